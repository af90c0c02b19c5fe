// Launches of the MoE operator on one device. Nothing here allocates or synchronises: all launches are capture-safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "compute/cuda/mega_moe/heuristics.h"
#include "compute/cuda/mega_moe/panel.h"
#include "compute/cuda/mega_moe/params.h"

namespace megamoe::cuda {

enum class MegaMoeVersion : std::int32_t {
    kStandard = 0,    // a launch for every stage
    kPhased = 1,      // MegaMoE 1: one launch, a phase starts when the one before is over
    kOverlapped = 2,  // MegaMoE 2
};

struct MegaMoeLimits {
    std::int32_t max_blocks;  // co-resident thread blocks of this kernel on the device
    std::int32_t registers;
    std::int32_t shared_bytes;
    std::int32_t stages;
    std::int32_t local_bytes;  // spills; 0 unless something went wrong
};

// Error cudaErrorInvalidValue: no instantiation of this width, or a shape out of range
//       cudaErrorNotSupported: the device lacks the instructions or the shared memory
cudaError_t query_mega_moe(ExpertFormat format, std::int32_t tokens, MegaMoeLimits& limits);

// The constant part of the parameters: shape, layouts, schedule. Pointers are the caller's to fill in.
MegaMoeParams make_mega_moe_params(const mega::Shape& shape, const MegaMoeConfig& config);

// In    p.schedule.block picks the instantiation; p.blocks_per_rank * p.launch_ranks thread blocks must be co-resident
// Error as query_mega_moe; cudaErrorCooperativeLaunchTooLarge: more thread blocks than fit at once
cudaError_t launch_mega_moe(const MegaMoeParams& p, ExpertFormat format, MegaMoeVersion version, cudaStream_t stream);

}  // namespace megamoe::cuda
