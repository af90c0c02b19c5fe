#include "compute/cuda/mega_moe/kernels.h"
#include "compute/cuda/mega_moe/launch.h"
#include "compute/cuda/mega_moe/prepare.h"

namespace megamoe::cuda {
namespace {

bool find_kernel(ExpertFormat format, std::int32_t tokens, MegaMoeKernel& kernel) {
    switch (tokens) {
        case 8:
            kernel = mega_moe_kernel<8>(format);
            return true;
        case 16:
            kernel = mega_moe_kernel<16>(format);
            return true;
        case 24:
            kernel = mega_moe_kernel<24>(format);
            return true;
        case 32:
            kernel = mega_moe_kernel<32>(format);
            return true;
        case 48:
            kernel = mega_moe_kernel<48>(format);
            return true;
        case 64:
            kernel = mega_moe_kernel<64>(format);
            return true;
        case 80:
            kernel = mega_moe_kernel<80>(format);
            return true;
        case 96:
            kernel = mega_moe_kernel<96>(format);
            return true;
        case 112:
            kernel = mega_moe_kernel<112>(format);
            return true;
        default:
            return false;
    }
}

bool in_range(const MegaMoeParams& p) {
    const mega::Shape& s = p.shape;
    return s.num_ranks >= 1 && s.num_ranks <= kMaxLaunchRanks && s.num_experts % s.num_ranks == 0 &&
           s.num_experts <= kMaxExperts && s.local_experts() <= kMaxLocalExperts &&
           s.local_experts() * s.num_ranks <= kMaxCountCells && s.hidden % kPanelCols == 0 &&
           s.inter % kPanelChannels == 0 && std::int64_t{s.max_rows} * s.top_k < (1 << 24) && s.top_k < 255;
}

cudaError_t launch_phases(MegaMoeParams p, const MegaMoeKernel& kernel, std::uint32_t phases, std::uint32_t overlap,
                          cudaStream_t stream) {
    p.phases = phases;
    p.overlap = overlap;
    void* arguments[] = {&p};
    return cudaLaunchCooperativeKernel(
        reinterpret_cast<const void*>(kernel.entry), dim3(static_cast<unsigned>(p.blocks_per_rank * p.launch_ranks)),
        dim3(static_cast<unsigned>(kernel.threads)), arguments, static_cast<std::size_t>(kernel.shared_bytes), stream);
}

}  // namespace

cudaError_t query_mega_moe(ExpertFormat format, std::int32_t tokens, MegaMoeLimits& limits) {
    MegaMoeKernel kernel{};
    if (!find_kernel(format, tokens, kernel)) {
        return cudaErrorInvalidValue;
    }
    const auto* entry = reinterpret_cast<const void*>(kernel.entry);
    cudaError_t error = cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.shared_bytes);
    if (error != cudaSuccess) {
        return cudaErrorNotSupported;
    }
    cudaFuncAttributes attributes{};
    int device = 0;
    int multiprocessors = 0;
    int blocks = 0;
    if ((error = cudaFuncGetAttributes(&attributes, entry)) != cudaSuccess ||
        (error = cudaGetDevice(&device)) != cudaSuccess ||
        (error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device)) != cudaSuccess ||
        (error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
             &blocks, entry, kernel.threads, static_cast<std::size_t>(kernel.shared_bytes))) != cudaSuccess) {
        return error;
    }
    limits = {blocks * multiprocessors, attributes.numRegs, kernel.shared_bytes, kernel.stages,
              static_cast<std::int32_t>(attributes.localSizeBytes)};
    return cudaSuccess;
}

MegaMoeParams make_mega_moe_params(const mega::Shape& shape, const MegaMoeConfig& config) {
    MegaMoeParams p{};
    p.shape = shape;
    p.heap = mega::heap_layout(shape, mega::fp8_wire(shape.hidden));
    p.schedule.num_experts = shape.local_experts();
    p.schedule.block = config.tokens;
    p.schedule.unit_blocks = config.unit_blocks;
    p.schedule.lag = config.lag;
    p.schedule.tiles1 = panel_counts(1, shape.hidden, shape.inter).rows;
    p.schedule.tiles2 = panel_counts(2, shape.hidden, shape.inter).rows;
    p.workspace = workspace_layout(shape, p.schedule, config.ring_blocks);
    p.prefetch_panels = config.prefetch_panels;
    p.launch_ranks = 1;
    p.timeout_ns = std::uint64_t{30} * 1000 * 1000 * 1000;
    return p;
}

cudaError_t launch_mega_moe(const MegaMoeParams& p, ExpertFormat format, MegaMoeVersion version, cudaStream_t stream) {
    MegaMoeKernel kernel{};
    if (!in_range(p) || !find_kernel(format, p.schedule.block, kernel)) {
        return cudaErrorInvalidValue;
    }
    const std::int32_t least = version == MegaMoeVersion::kOverlapped ? mega::min_ring_blocks(p.schedule) : INT32_MAX;
    if (!p.workspace.whole && p.workspace.ring_blocks < least) {
        return cudaErrorInvalidValue;  // phases one after another need room for all rows
    }
    if (version != MegaMoeVersion::kStandard) {
        return launch_phases(p, kernel, kAllPhases, version == MegaMoeVersion::kOverlapped ? 1 : 0, stream);
    }
    for (const std::uint32_t phase : {kCount, kPull, kLayer1, kLayer2, kReduce}) {
        if (const cudaError_t error = launch_phases(p, kernel, phase, 1, stream); error != cudaSuccess) {
            return error;
        }
    }
    return cudaSuccess;
}

}  // namespace megamoe::cuda
