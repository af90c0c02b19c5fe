#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "compute/ops/formats.h"
#include "world.h"

namespace megamoe::op_cuda {
namespace {

__device__ std::uint32_t mix(std::uint64_t i, std::uint32_t seed) {
    auto x = static_cast<std::uint32_t>(i ^ (i >> 32)) * 0x9E3779B9U + seed * 0x85EBCA6BU;
    x ^= x >> 16;
    x *= 0x7FEB352DU;
    x ^= x >> 15;
    x *= 0x846CA68BU;
    return x ^ (x >> 16);
}

// Random bytes: any code of MXFP4; of E4M3 without NaN.
__global__ void fill_codes(std::uint8_t* out, std::int64_t count, std::uint32_t seed, bool fp8) {
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
        std::uint32_t code = mix(i, seed) & 0xFFU;
        if (fp8) {
            code = (code & 0x80U) | (0x20U + code % 0x28U);  // magnitudes 2^-3 .. 3
        }
        out[i] = static_cast<std::uint8_t>(code);
    }
}

__global__ void fill_scales(std::uint8_t* out, std::int64_t count, std::uint32_t seed, std::int32_t spread) {
    const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
    for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
        out[i] = static_cast<std::uint8_t>(122 - mix(i, seed) % static_cast<std::uint32_t>(spread));
    }
}

__global__ void fill_scales_f32(float* out, std::int64_t count, std::uint32_t seed) {
    const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count) {
        out[i] = 0.01F + 0.02F * static_cast<float>(mix(i, seed) % 1000) / 1000.0F;
    }
}

template <class T>
void to_device(void* to, const std::vector<T>& from) {
    if (!from.empty()) {
        check(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "copy to device");
    }
}

std::vector<std::int32_t> route_row(std::mt19937& random, const mega::Shape& s, Routing routing) {
    std::vector<std::int32_t> ids;
    if (routing == Routing::kOneExpert) {
        ids.assign(static_cast<std::size_t>(s.top_k), -1);
        ids[0] = s.num_experts - 1;
        return ids;
    }
    while (static_cast<std::int32_t>(ids.size()) < s.top_k) {
        std::int32_t expert = std::uniform_int_distribution<std::int32_t>(0, s.num_experts - 1)(random);
        if (routing == Routing::kSkewed && random() % 2 == 0) {
            expert = expert % std::max(s.top_k, s.num_experts / 8);
        }
        if (std::find(ids.begin(), ids.end(), expert) == ids.end()) {
            ids.push_back(expert);
        }
    }
    if (routing == Routing::kWithHoles) {
        for (auto& id : ids) {
            id = random() % 4 == 0 ? -1 : id;
        }
    }
    return ids;
}

}  // namespace

void check(cudaError_t error, const char* what) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "device: %s: %s\n", what, cudaGetErrorString(error));
        std::exit(3);
    }
}

DeviceBuffer::DeviceBuffer(std::int64_t bytes) : bytes_(bytes) {
    check(cudaMalloc(&data_, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 16))), "allocate");
    check(cudaMemset(data_, 0, static_cast<std::size_t>(std::max<std::int64_t>(bytes, 16))), "clear");
}

DeviceBuffer::~DeviceBuffer() {
    cudaFree(data_);
}

World::World(const WorldOptions& options)
    : o_(options), params_(cuda::make_mega_moe_params(options.shape, options.config)) {
    const mega::Shape& s = o_.shape;
    const bool fp8 = o_.format == cuda::ExpertFormat::kFp8;
    const std::int64_t elements = std::int64_t{s.num_experts} * s.hidden * s.inter;
    for (int m = 1; m <= 3; ++m) {
        const std::int64_t code_bytes = fp8 ? elements : elements / 2;
        raw_codes_[m] = DeviceBuffer(code_bytes);
        fill_codes<<<2048, 256>>>(raw_codes_[m].as<std::uint8_t>(), code_bytes, o_.seed * 7U + m, fp8);
        if (fp8) {
            const std::int64_t blocks = elements / (128 * 128);
            raw_scales_[m] = DeviceBuffer(blocks * 4);
            fill_scales_f32<<<static_cast<unsigned>((blocks + 255) / 256), 256>>>(raw_scales_[m].as<float>(), blocks,
                                                                                  o_.seed + m);
        } else {
            raw_scales_[m] = DeviceBuffer(elements / 32);
            fill_scales<<<2048, 256>>>(raw_scales_[m].as<std::uint8_t>(), elements / 32, o_.seed * 13U + m,
                                       o_.exponent_spread);
        }
        check(cudaGetLastError(), "fill weights");
    }
    DeviceBuffer report(sizeof(cuda::FoldReport));
    for (std::int32_t set = 0; set < o_.weight_sets; ++set) {
        w13_.emplace_back();
        w2_.emplace_back();
        for (std::int32_t r = 0; r < s.num_ranks; ++r) {
            const cuda::RawExperts raw = raw_experts(r);
            w13_.back().emplace_back(cuda::panel_bytes(o_.format, 1, s.hidden, s.inter, s.local_experts()));
            w2_.back().emplace_back(cuda::panel_bytes(o_.format, 2, s.hidden, s.inter, s.local_experts()));
            check(cuda::launch_prepare_panels(raw, 1, w13_.back().back().as(), report.as<cuda::FoldReport>(), nullptr),
                  "prepare");
            check(cuda::launch_prepare_panels(raw, 2, w2_.back().back().as(), report.as<cuda::FoldReport>(), nullptr),
                  "prepare");
        }
    }
    check(cudaMemcpy(&fold_, report.as(), sizeof(fold_), cudaMemcpyDeviceToHost), "fold report");
    num_rows_ = DeviceBuffer(s.num_ranks * 4);
    cuda::MegaMoeLimits limits{};
    check(cuda::query_mega_moe(o_.format, o_.config.tokens, limits), "query");
    params_.first_rank = 0;
    params_.launch_ranks = s.num_ranks;
    params_.blocks_per_rank = limits.max_blocks / s.num_ranks;
    params_.clamp = o_.clamp;
    for (std::int32_t r = 0; r < s.num_ranks; ++r) {
        heaps_.emplace_back(params_.heap.bytes);
        workspaces_.emplace_back(params_.workspace.bytes);
        outs_.emplace_back(std::int64_t{s.max_rows} * s.hidden * 2);
        params_.heap_base[r] = heaps_.back().as();
        params_.rank[r].workspace = workspaces_.back().as();
        params_.rank[r].num_rows = num_rows_.as<std::int32_t>(r * 4);
        params_.rank[r].out = outs_.back().as<__nv_bfloat16>();
    }
}

cuda::RawExperts World::raw_experts(std::int32_t rank) const {
    const mega::Shape& s = o_.shape;
    cuda::RawExperts raw{o_.format, s.local_experts(), s.hidden, s.inter, {}, {}};
    for (int m = 1; m <= 3; ++m) {
        raw.codes[m] = raw_codes_[m].as<std::uint8_t>(raw_codes_[m].bytes() / s.num_ranks * rank);
        raw.scales[m] = raw_scales_[m].as(raw_scales_[m].bytes() / s.num_ranks * rank);
    }
    return raw;
}

HostExpert World::host_expert(std::int32_t expert) const {
    HostExpert e;
    for (int m = 1; m <= 3; ++m) {
        const std::int64_t codes = raw_codes_[m].bytes() / o_.shape.num_experts;
        const std::int64_t scales = raw_scales_[m].bytes() / o_.shape.num_experts;
        e.codes[m].resize(static_cast<std::size_t>(codes));
        e.scales[m].resize(static_cast<std::size_t>(scales));
        check(
            cudaMemcpy(e.codes[m].data(), raw_codes_[m].as(codes * expert), e.codes[m].size(), cudaMemcpyDeviceToHost),
            "codes");
        check(cudaMemcpy(e.scales[m].data(), raw_scales_[m].as(scales * expert), e.scales[m].size(),
                         cudaMemcpyDeviceToHost),
              "scales");
    }
    return e;
}

void World::set_rows(const std::vector<std::int32_t>& rows) {
    rows_ = rows;
    to_device(num_rows_.as(), rows);
}

void World::set_inputs(const std::vector<std::int32_t>& rows, Routing routing, std::uint32_t seed) {
    const mega::Shape& s = o_.shape;
    set_rows(rows);
    ids_.assign(static_cast<std::size_t>(s.num_ranks), {});
    weights_.assign(ids_.size(), {});
    x_.assign(ids_.size(), {});
    x_scale_.assign(ids_.size(), {});
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (std::size_t r = 0; r < ids_.size(); ++r) {
        std::vector<float> group(128);
        for (std::int32_t row = 0; row < rows[r]; ++row) {
            for (const std::int32_t id : route_row(random, s, routing)) {
                ids_[r].push_back(id);
                weights_[r].push_back(0.05F + static_cast<float>(random() % 1000) / 2000.0F);
            }
            for (std::int32_t g = 0; g < s.hidden / 128; ++g) {
                float amax = 1e-4F;
                for (auto& v : group) {
                    v = row < 4096 ? normal(random) : static_cast<float>(random() % 2001) / 1000.0F - 1.0F;
                    amax = std::max(amax, std::fabs(v));
                }
                const float scale = ops::pow2_ceil(amax * (1.0F / 448.0F));
                x_scale_[r].push_back(scale);
                for (const float v : group) {
                    x_[r].push_back(ops::to_e4m3(v / scale));
                }
            }
        }
        std::byte* const heap = heaps_[r].as();
        to_device(heap + params_.heap.topk_id, ids_[r]);
        to_device(heap + params_.heap.topk_weight, weights_[r]);
        to_device(heap + params_.heap.x, x_[r]);
        to_device(heap + params_.heap.x_scale, x_scale_[r]);
    }
}

void World::set_epoch(std::uint32_t epoch) {
    epoch ^= (control(0).epoch ^ epoch) & 1U;  // the bank that the last launch cleared
    for (const auto& heap : heaps_) {
        check(cudaMemcpy(heap.as() + params_.heap.control, &epoch, 4, cudaMemcpyHostToDevice), "set epoch");
    }
}

void World::poison_outputs(cudaStream_t stream) {
    for (std::size_t r = 0; r < outs_.size(); ++r) {
        check(cudaMemsetAsync(outs_[r].as(), 0xFF, static_cast<std::size_t>(outs_[r].bytes()), stream), "poison");
        check(cudaMemsetAsync(heaps_[r].as() + params_.heap.combine, 0xFF,
                              static_cast<std::size_t>(params_.heap.bytes - params_.heap.combine), stream),
              "poison");
    }
}

cudaError_t World::launch(cuda::MegaMoeVersion version, std::int32_t weight_set, cudaStream_t stream) {
    cuda::MegaMoeParams p = params_;
    for (std::int32_t r = 0; r < o_.shape.num_ranks; ++r) {
        const auto set = static_cast<std::size_t>(weight_set);
        p.rank[r].w13 = w13_[set][static_cast<std::size_t>(r)].as();
        p.rank[r].w2 = w2_[set][static_cast<std::size_t>(r)].as();
    }
    p.delay_ns = delay_ns_;
    p.timeout_ns = timeout_ns_;
    return cuda::launch_mega_moe(p, o_.format, version, stream);
}

std::vector<float> World::output(std::int32_t rank) const {
    const auto r = static_cast<std::size_t>(rank);
    std::vector<std::uint16_t> raw(static_cast<std::size_t>(rows_[r]) * static_cast<std::size_t>(o_.shape.hidden));
    if (!raw.empty()) {
        check(cudaMemcpy(raw.data(), outs_[r].as(), raw.size() * 2, cudaMemcpyDeviceToHost), "output");
    }
    std::vector<float> out;
    for (const std::uint16_t v : raw) {
        out.push_back(ops::from_bf16(v));
    }
    return out;
}

mega::Control World::control(std::int32_t rank) const {
    mega::Control control{};
    check(cudaMemcpy(&control, heaps_[static_cast<std::size_t>(rank)].as() + params_.heap.control, sizeof(control),
                     cudaMemcpyDeviceToHost),
          "control");
    return control;
}

std::int32_t World::active_experts() const {
    std::vector<bool> hit(static_cast<std::size_t>(o_.shape.num_experts));
    for (const auto& ids : ids_) {
        for (const std::int32_t id : ids) {
            if (id >= 0) {
                hit[static_cast<std::size_t>(id)] = true;
            }
        }
    }
    return static_cast<std::int32_t>(std::count(hit.begin(), hit.end(), true));
}

double World::error(std::int32_t max_rows) const {
    struct Item {
        std::size_t rank;
        std::int32_t row;
        std::int32_t choice;
        std::vector<float> result;
    };
    const mega::Shape& s = o_.shape;
    const OracleShape shape{o_.format == cuda::ExpertFormat::kFp8, s.hidden, s.inter, o_.clamp};
    std::vector<std::vector<std::int32_t>> chosen(rows_.size());
    std::vector<Item> items;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        const std::int32_t count = std::min(rows_[r], max_rows);
        for (std::int32_t i = 0; i < count; ++i) {
            const std::int32_t row =
                count == rows_[r]
                    ? i
                    : static_cast<std::int32_t>(std::int64_t{i} * (rows_[r] - 1) / std::max(count - 1, 1));
            chosen[r].push_back(row);
            for (std::int32_t k = 0; k < s.top_k; ++k) {
                items.push_back({r, row, k, {}});
            }
        }
    }
    std::map<std::int32_t, HostExpert> experts;
    const auto id_of = [&](const Item& item) {
        return ids_[item.rank][static_cast<std::size_t>(item.row * s.top_k + item.choice)];
    };
    for (const Item& item : items) {
        if (id_of(item) >= 0 && !experts.contains(id_of(item))) {
            experts.emplace(id_of(item), host_expert(id_of(item)));
        }
    }
    std::mutex mutex;
    std::size_t next = 0;
    std::vector<std::thread> workers;
    for (unsigned w = 0; w < std::max(1U, std::thread::hardware_concurrency()); ++w) {
        workers.emplace_back([&] {
            for (;;) {
                std::size_t i = 0;
                {
                    const std::lock_guard lock(mutex);
                    i = next++;
                }
                if (i >= items.size()) {
                    return;
                }
                Item& item = items[i];
                if (id_of(item) >= 0) {
                    const auto row = static_cast<std::size_t>(item.row);
                    item.result = run_expert(
                        shape, experts.at(id_of(item)), x_[item.rank].data() + row * static_cast<std::size_t>(s.hidden),
                        x_scale_[item.rank].data() + row * static_cast<std::size_t>(s.hidden / 128),
                        weights_[item.rank]
                                [row * static_cast<std::size_t>(s.top_k) + static_cast<std::size_t>(item.choice)]);
                }
            }
        });
    }
    for (auto& worker : workers) {
        worker.join();
    }
    double difference = 0;
    double norm = 1e-30;
    std::size_t at = 0;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        const std::vector<float> out = output(static_cast<std::int32_t>(r));
        for (const std::int32_t row : chosen[r]) {
            std::vector<const Item*> order;
            for (std::int32_t k = 0; k < s.top_k; ++k) {
                order.push_back(&items[at++]);
            }
            std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return id_of(*a) < id_of(*b); });
            for (std::int32_t c = 0; c < s.hidden; ++c) {
                float sum = 0;
                for (const Item* item : order) {
                    sum += item->result.empty() ? 0.0F : item->result[static_cast<std::size_t>(c)];
                }
                const double want = static_cast<double>(sum);
                const double have =
                    static_cast<double>(out[static_cast<std::size_t>(row) * static_cast<std::size_t>(s.hidden) +
                                            static_cast<std::size_t>(c)]);
                difference += (have - want) * (have - want);
                norm += want * want;
                if (std::isnan(have)) {
                    return std::nan("");
                }
            }
        }
    }
    return std::sqrt(difference / norm);
}

}  // namespace megamoe::op_cuda
