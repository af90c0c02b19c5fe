// Which experts the rows of a test go to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "moe/op/op_case.h"

namespace megamoe::moe::op {

enum class RoutingKind : std::uint8_t {
    kUniform,    // K different experts, all alike
    kLogNormal,  // K different experts; popularity exp(sigma * normal)
    kOneExpert,  // every row to expert 0 alone, the other choices empty (-1)
    kOneRank,    // K different experts of rank 0; choices beyond its experts are empty
    kRecorded,   // a file, over and over
};

struct Routing {
    RoutingKind kind = RoutingKind::kUniform;
    double sigma = 1;                    // of kLogNormal
    std::string file;                    // of kRecorded
    std::vector<std::int32_t> recorded;  // [lines, K], from parse_recorded()
    std::string text = "uniform";        // as it was asked for
};

// "uniform", "one-expert", "one-rank", "log-normal", "log-normal:SIGMA", "file:PATH"; the file is not read here.
// Error kInvalidArgument: none of these; the nearest one
[[nodiscard]] Result<Routing> parse_routing(const std::string& text);

// In    text  JSON lines, the K experts of one row each: [3, 17, 0, 5]; -1 = none. Empty lines do not count.
// Error kInvalidArgument: line, value and what it must be
[[nodiscard]] Result<std::vector<std::int32_t>> parse_recorded(std::string_view text, const Geometry& geometry);

struct Routes {
    std::vector<std::int32_t> expert_id;  // [rows, K]
    std::vector<float> weight;            // [rows, K], positive; a row sums to 1.5
};

// Same  a row depends on its number, the seed and the arguments, not on `rows`
Routes make_routes(const Routing& routing, const Geometry& geometry, std::int32_t num_ranks, std::int64_t rows,
                   std::uint64_t seed);

}  // namespace megamoe::moe::op
