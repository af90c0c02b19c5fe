// How fast are the backends, and how far from what this machine can do? Every row is checked before it is timed,
// backends take turns repetition by repetition, and the roof is measured beside each case.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "moe/op/op_case.h"
#include "moe/op/op_routing.h"
#include "moe/operator.h"

namespace megamoe::moe::op {

// What the machine can do at best, measured when called.
struct Roofs {
    // Bytes a second that so many threads read from memory together.
    std::function<double(std::int32_t threads)> read;
    // Operations a second of so many threads that each compute a bfloat16 product [m, k] x [k, n]; empty: not to be
    // had.
    std::function<std::optional<double>(std::int32_t m, std::int32_t n, std::int32_t k, std::int32_t threads)> product;
};

struct BenchOptions {
    Geometry geometry;
    std::vector<ops::WeightFormat> formats;
    std::vector<Routing> routings;
    std::vector<std::int32_t> tokens;  // rows a rank brings [T]
    std::int32_t num_ranks = 2;
    std::int32_t threads_per_rank = 1;
    std::int32_t repeats = 15;
    double seconds = 10;  // of timing a case: fewer repetitions, 3 at least, where `repeats` would take longer
    std::uint64_t seed = 1;
    cpu::Isa isa{};
};

// From so many rows an expert on, the products bind and not the memory.
inline constexpr double kComputeRows = 32;

struct BenchRow {
    Geometry geometry;
    ops::WeightFormat format{};
    std::string routing;
    MoeBackend backend{};
    std::int32_t ranks = 0;
    std::int32_t threads_per_rank = 0;
    std::int32_t tokens = 0;  // a rank

    std::int32_t visited_experts = 0;  // routed ones with rows
    double rows_an_expert = 0;         // of the visited ones
    double bytes = 0;                  // packed weights of the visited experts, and of the shared one on each rank
    double operations = 0;             // two a multiply-add, shared expert included

    std::int32_t repeats = 0;
    double median_us = 0;  // from the first start to the last end over the ranks
    double fastest_us = 0;
    double skew_us = 0;             // median of longest minus shortest rank
    std::vector<double> stages_us;  // by Stage: mean over the ranks of the medians

    std::string_view roof;  // "stream read", "oneDNN bf16", "no oneDNN"
    double roof_rate = 0;   // bytes or operations a second, the best of many runs; 0 = unknown
    double speedup = 1;     // median of `standard` / median of this one

    bool binds_on_memory() const { return rows_an_expert < kComputeRows; }
    double bytes_a_second(double us) const { return bytes / us * 1e6; }
    double operations_a_second(double us) const { return operations / us * 1e6; }
    // What a run of `us` reaches of the roof. A working set that a cache holds can pass that of the memory.
    std::optional<double> roof_fraction(double us) const {
        const double rate = binds_on_memory() ? bytes_a_second(us) : operations_a_second(us);
        return roof_rate > 0 ? std::optional(rate / roof_rate) : std::nullopt;
    }
};

struct BenchProgress {
    std::int32_t done = 0;
    std::int32_t total = 0;
    std::string now;  // what is being measured
};

// In    report    gets every row when it is known
//       progress  is called before each case
// Error kResourceExhausted: the experts do not fit; kInternal: a backend gives other bits; or as make_operator()
[[nodiscard]] Result<Done> run_bench(const BenchOptions& options, const Roofs& roofs,
                                     const std::function<void(const BenchRow&)>& report,
                                     const std::function<void(const BenchProgress&)>& progress);

}  // namespace megamoe::moe::op
