// What one request's times say. Pure functions of a record; all figures in milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lab/client/request_record.h"
#include "lab/stats/distribution.h"

namespace megamoe::lab {

enum class ItlBasis : std::uint8_t {
    kCounted,      // the server counted tokens in every chunk
    kOnePerChunk,  // it did not, but there were as many chunks as tokens
    kUnknown,      // neither: there is no inter-token latency, only the gaps between chunks
};
std::string_view to_string(ItlBasis basis);

// Spec  bench.md 6.1. `_user` figures start when the load model wanted the request to start, the others when it was
//       sent.
struct RequestMetrics {
    std::optional<double> ttft;
    std::optional<double> ttft_user;
    std::optional<double> queue;
    std::optional<double> conn;
    std::optional<double> e2el;
    std::optional<double> e2el_user;
    std::optional<double> tpot;         // (last - first) / (n - 1), n >= 2
    std::optional<double> tpot_strict;  // (last - first) / (n - tokens of the first chunk)
    std::optional<double> merge;        // tokens a chunk, after the first chunk
    std::vector<double> icl;            // raw gaps between chunks
    std::vector<WeightedValue> itl;     // the same, each split over the tokens of its chunk
    ItlBasis basis = ItlBasis::kUnknown;
};

// Same  mean(itl) == tpot_strict and mean(icl) == merge * tpot_strict, whenever they exist
RequestMetrics request_metrics(const RequestRecord& record);

// Tokens of each chunk as far as known: counted, or one each; where neither holds, the total spread evenly.
std::vector<double> tokens_of_chunks(const RequestRecord& record);

// The gaps of a whole run fall into decode steps and stalls behind somebody else's prefill.
struct GapMixture {
    double stall_share = 0;     // of the gaps
    double low_median_ms = 0;   // about one decode step
    double stall_extra_ms = 0;  // median of the stalls minus the former
};
// Otsu's threshold on log(gap). Out  none for fewer than 64 gaps or when they do not separate
std::optional<GapMixture> gap_mixture(std::span<const double> icl);

}  // namespace megamoe::lab
