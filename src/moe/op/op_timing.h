// One case of the benchmark on its ranks: check every backend, then time them in turns.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "moe/op/op_run.h"

namespace megamoe::moe::op {

// `standard` first: the others are compared with it.
inline constexpr std::array kTimedBackends{MoeBackend::kStandard, MoeBackend::kMegaMoe1, MoeBackend::kMegaMoe2};

struct TimingCase {
    const Geometry& geometry;
    const LayerExperts& experts;
    const Batch& batch;
    Split split;
    std::int32_t threads_per_rank = 1;
    std::int32_t repeats = 15;
    double seconds = 10;
    cpu::Isa isa{};
};

// Whether every compute thread of every rank gets a core of its own; then ranks are kept on theirs. Two ranks on one
// core would measure the scheduler.
bool ranks_have_cores(std::int32_t num_ranks, std::int32_t threads_per_rank);

// One forward on one rank.
struct Sample {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    StageTimes stages{};
};

using BackendSamples = std::vector<std::vector<Sample>>;  // [repetition][rank]

// Out   samples of every backend of kTimedBackends
// Error kInternal: a backend's first rows differ from `reference`, or any row from `standard`; or as make_operator()
[[nodiscard]] Result<std::array<BackendSamples, kTimedBackends.size()>> time_backends(const TimingCase& c);

}  // namespace megamoe::moe::op
