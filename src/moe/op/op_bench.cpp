#include "moe/op/op_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "moe/op/op_timing.h"

namespace megamoe::moe::op {
namespace {

constexpr int kFirstReads = 5;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) {
        return *middle;
    }
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double us(std::int64_t ns) {
    return static_cast<double>(ns) * 1e-3;
}

double packed_bytes(const PackedExpert& expert) {
    return static_cast<double>(expert.w1.bytes() + expert.w3.bytes() + expert.w2.bytes());
}

// What a case makes every backend read and compute.
void fill_work(const Batch& batch, const LayerExperts& experts, BenchRow& row) {
    std::set<std::int32_t> visited;
    double pairs = 0;
    for (const std::int32_t id : batch.routes.expert_id) {
        if (id >= 0) {
            visited.insert(id);
            ++pairs;
        }
    }
    row.visited_experts = static_cast<std::int32_t>(visited.size());
    row.rows_an_expert = visited.empty() ? 0 : pairs / static_cast<double>(visited.size());
    row.bytes = packed_bytes(experts.shared) * row.ranks;
    for (const std::int32_t id : visited) {
        row.bytes += packed_bytes(experts.routed[static_cast<std::size_t>(id)]);
    }
    const double operations_a_row = 6.0 * row.geometry.hidden * row.geometry.inter;
    row.operations = operations_a_row * (pairs + static_cast<double>(batch.rows));
}

// oneDNN's rate over an expert's three products.
std::optional<double> product_rate(const Roofs& roofs, const Geometry& g, std::int32_t rows, std::int32_t threads) {
    const auto first = roofs.product(rows, g.inter, g.hidden, threads);
    const auto second = roofs.product(rows, g.hidden, g.inter, threads);
    return first && second ? std::optional(3 / (2 / *first + 1 / *second)) : std::nullopt;
}

void fill_roof(const Roofs& roofs, BenchRow& row) {
    const std::int32_t threads = row.ranks * row.threads_per_rank;
    if (row.binds_on_memory()) {
        row.roof = "stream read";
        row.roof_rate = roofs.read(threads);
        return;
    }
    const auto rate =
        product_rate(roofs, row.geometry, static_cast<std::int32_t>(std::lround(row.rows_an_expert)), threads);
    row.roof = rate ? "oneDNN bf16" : "no oneDNN";
    row.roof_rate = rate.value_or(0);
}

void fill_times(const BackendSamples& samples, BenchRow& row) {
    std::vector<double> total;
    std::vector<double> skew;
    std::vector<std::vector<double>> stages(kStageNames.size());
    for (const std::vector<Sample>& ranks : samples) {
        std::int64_t begin = ranks.front().begin_ns;
        std::int64_t end = 0;
        std::int64_t longest = 0;
        std::int64_t shortest = ranks.front().end_ns - ranks.front().begin_ns;
        StageTimes sum{};
        for (const Sample& sample : ranks) {
            const std::int64_t took = sample.end_ns - sample.begin_ns;
            begin = std::min(begin, sample.begin_ns);
            end = std::max(end, sample.end_ns);
            longest = std::max(longest, took);
            shortest = std::min(shortest, took);
            std::transform(sum.begin(), sum.end(), sample.stages.begin(), sum.begin(), std::plus<>());
        }
        total.push_back(us(end - begin));
        skew.push_back(us(longest - shortest));
        for (std::size_t s = 0; s < sum.size(); ++s) {
            stages[s].push_back(us(sum[s]) / static_cast<double>(ranks.size()));
        }
    }
    row.repeats = static_cast<std::int32_t>(samples.size());
    row.median_us = median(total);
    row.fastest_us = *std::min_element(total.begin(), total.end());
    row.skew_us = median(skew);
    std::transform(stages.begin(), stages.end(), std::back_inserter(row.stages_us), median);
}

// The rows of one case, one a backend.
Result<std::vector<BenchRow>> run_case(const BenchOptions& o, const Roofs& roofs, const LayerExperts& experts,
                                       const Batch& batch, const BenchRow& blank) {
    MM_TRY(const auto samples, time_backends({.geometry = blank.geometry,
                                              .experts = experts,
                                              .batch = batch,
                                              .split = split_evenly(blank.tokens, blank.ranks),
                                              .threads_per_rank = blank.threads_per_rank,
                                              .repeats = o.repeats,
                                              .seconds = o.seconds,
                                              .isa = o.isa}));
    BenchRow common = blank;
    fill_work(batch, experts, common);
    fill_roof(roofs, common);
    std::vector<BenchRow> rows;
    for (std::size_t b = 0; b < kTimedBackends.size(); ++b) {
        BenchRow row = common;
        row.backend = kTimedBackends[b];
        fill_times(samples[b], row);
        row.speedup = rows.empty() ? 1 : rows.front().median_us / row.median_us;
        rows.push_back(row);
    }
    return rows;
}

// What the rows of a layer's cases have in common.
BenchRow blank_row(const BenchOptions& o, const Geometry& geometry, ops::WeightFormat format) {
    BenchRow row;
    row.geometry = geometry;
    row.format = format;
    row.ranks = o.num_ranks;
    row.threads_per_rank = o.threads_per_rank;
    return row;
}

}  // namespace

Result<Done> run_bench(const BenchOptions& o, const Roofs& roofs, const std::function<void(const BenchRow&)>& report,
                       const std::function<void(const BenchProgress&)>& progress) {
    BenchProgress at;
    at.total = static_cast<std::int32_t>(o.formats.size() * o.routings.size() * o.tokens.size());
    const Geometry& geometry = o.geometry;
    // A roof counts as the best seen so far: on a busy machine the first rows would otherwise be held against a low
    // one.
    for (int chance = 0; chance < kFirstReads; ++chance) {
        (void)roofs.read(o.num_ranks * o.threads_per_rank);
    }
    for (const ops::WeightFormat format : o.formats) {
        MM_TRY_DONE(check_memory(layer_bytes(geometry, format), geometry));
        at.now = fmt::format("{} {}: making {} experts", geometry.name, name_of(format), geometry.num_experts);
        progress(at);
        Workers makers(o.num_ranks * o.threads_per_rank);
        const LayerExperts experts = random_layer(geometry, format, o.seed, makers);
        BenchRow blank = blank_row(o, geometry, format);
        for (const Routing& routing : o.routings) {
            blank.routing = routing.text;
            for (const std::int32_t tokens : o.tokens) {
                blank.tokens = tokens;
                at.now = fmt::format("{} {} {} T={}", geometry.name, name_of(format), routing.text, tokens);
                progress(at);
                const auto batch =
                    make_batch(routing, geometry, o.num_ranks, std::int64_t{tokens} * o.num_ranks, o.seed);
                MM_TRY(const auto rows, run_case(o, roofs, experts, batch, blank));
                std::for_each(rows.begin(), rows.end(), report);
                ++at.done;
            }
        }
    }
    return Done{};
}

}  // namespace megamoe::moe::op
