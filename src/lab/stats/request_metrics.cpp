#include "lab/stats/request_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace megamoe::lab {
namespace {

std::optional<double> span_ms(std::int64_t from_ns, std::int64_t to_ns) {
    return from_ns != 0 && to_ns != 0 ? std::optional(static_cast<double>(to_ns - from_ns) / 1e6) : std::nullopt;
}

ItlBasis basis_of(const RequestRecord& record) {
    if (record.chunks.empty()) {
        return ItlBasis::kUnknown;
    }
    const auto counted = [](const Chunk& chunk) { return chunk.tokens_so_far > 0; };
    if (std::all_of(record.chunks.begin(), record.chunks.end(), counted)) {
        return ItlBasis::kCounted;
    }
    return record.chunks.size() == record.output_tokens() ? ItlBasis::kOnePerChunk : ItlBasis::kUnknown;
}

void add_gaps(const RequestRecord& record, RequestMetrics& metrics) {
    const std::vector<Chunk>& chunks = record.chunks;
    for (std::size_t j = 1; j < chunks.size(); ++j) {
        const double gap = static_cast<double>(chunks[j].t_ns - chunks[j - 1].t_ns) / 1e6;
        metrics.icl.push_back(gap);
        if (metrics.basis == ItlBasis::kUnknown) {
            continue;
        }
        const std::uint32_t tokens =
            metrics.basis == ItlBasis::kCounted ? chunks[j].tokens_so_far - chunks[j - 1].tokens_so_far : 1;
        metrics.itl.push_back({gap / tokens, tokens});
    }
}

}  // namespace

std::string_view to_string(ItlBasis basis) {
    constexpr std::array<std::string_view, 3> kNames{"counted", "one_per_chunk", "unknown"};
    return kNames[static_cast<std::size_t>(basis)];
}

RequestMetrics request_metrics(const RequestRecord& record) {
    RequestMetrics metrics;
    metrics.basis = basis_of(record);
    metrics.ttft = span_ms(record.t_start, record.t_first);
    metrics.ttft_user = span_ms(record.t_sched, record.t_first);
    metrics.queue = span_ms(record.t_sched, record.t_slot);
    metrics.conn = span_ms(record.t_conn0, record.t_conn1);
    metrics.e2el = span_ms(record.t_start, record.t_last);
    metrics.e2el_user = span_ms(record.t_sched, record.t_last);
    const std::optional<double> decode = span_ms(record.t_first, record.t_last);
    const std::uint32_t n = record.output_tokens();
    if (decode && n >= 2) {
        metrics.tpot = *decode / (n - 1);
    }
    add_gaps(record, metrics);
    if (metrics.itl.empty()) {
        return metrics;
    }
    const bool counted = metrics.basis == ItlBasis::kCounted;
    const std::uint32_t after_first =
        (counted ? record.chunks.back().tokens_so_far : n) - (counted ? record.chunks.front().tokens_so_far : 1);
    metrics.tpot_strict = *decode / after_first;
    metrics.merge = static_cast<double>(after_first) / static_cast<double>(metrics.icl.size());
    MM_DCHECK(std::abs(Distribution(metrics.itl).mean() - *metrics.tpot_strict) <= 1e-9 * (1 + *metrics.tpot_strict),
              "inter-token latencies of", record.id, "do not add up to", *metrics.tpot_strict);
    return metrics;
}

std::vector<double> tokens_of_chunks(const RequestRecord& record) {
    const std::vector<Chunk>& chunks = record.chunks;
    std::vector<double> tokens(chunks.size());
    const bool counted = basis_of(record) == ItlBasis::kCounted;
    for (std::size_t j = 0; j < chunks.size(); ++j) {
        const std::uint32_t before = j == 0 ? 0 : chunks[j - 1].tokens_so_far;
        tokens[j] = counted ? chunks[j].tokens_so_far - before
                            : static_cast<double>(record.output_tokens()) / static_cast<double>(chunks.size());
    }
    return tokens;
}

std::optional<GapMixture> gap_mixture(std::span<const double> icl) {
    constexpr std::size_t kFewest = 64;
    constexpr double kSeparation = 2;  // medians closer than this factor are one class
    std::vector<double> sorted(icl.begin(), icl.end());
    std::erase_if(sorted, [](double gap) { return gap <= 0; });
    if (sorted.size() < kFewest) {
        return std::nullopt;
    }
    std::sort(sorted.begin(), sorted.end());
    double total = 0;
    for (const double gap : sorted) {
        total += std::log(gap);
    }
    const auto n = static_cast<double>(sorted.size());
    double below = 0;
    double best = -1;
    std::size_t split = 0;
    for (std::size_t k = 1; k < sorted.size(); ++k) {
        below += std::log(sorted[k - 1]);
        const auto left = static_cast<double>(k);
        const double difference = below / left - (total - below) / (n - left);
        const double between = left * (n - left) * difference * difference;
        if (between > best) {
            best = between;
            split = k;
        }
    }
    const std::span<const double> all(sorted);
    const double low = Distribution(all.first(split)).quantile(0.5);
    const double high = Distribution(all.subspan(split)).quantile(0.5);
    if (high < kSeparation * low) {
        return std::nullopt;
    }
    return GapMixture{
        .stall_share = (n - static_cast<double>(split)) / n, .low_median_ms = low, .stall_extra_ms = high - low};
}

}  // namespace megamoe::lab
