#include "compute/cuda/mega_moe/heuristics.h"

#include <algorithm>
#include <cmath>

#include "compute/mega/schedule.h"

namespace megamoe::cuda {
namespace {

// Probability that an expert with `mean` rows on average gets more than `rows`: random routing is close to Poisson.
double more_than(double rows, double mean) {
    return 0.5 * std::erfc((rows + 0.5 - mean) / std::sqrt(2 * std::max(mean, 1e-9)));
}

double expected_blocks(std::int32_t tokens, double mean) {
    double blocks = 0;
    for (std::int32_t k = 0; k * tokens < mean + 8 * std::sqrt(mean) + 1; ++k) {
        blocks += more_than(k * tokens, mean);
    }
    return blocks;
}

// Clocks of one stage, fitted to one H200: four warpgroups up to 48 rows, two with twice the tiles above.
double stage_clocks(std::int32_t tokens) {
    return tokens <= 48 ? 960 + 9.0 * tokens : 840 + 14.6 * tokens;
}

}  // namespace

double expected_panel_clocks(std::int32_t tokens, double mean) {
    return expected_blocks(tokens, mean) * stage_clocks(tokens);
}

MegaMoeConfig choose_config(const mega::Shape& shape, std::int32_t rows_per_rank) {
    MegaMoeConfig config;
    const double pairs = static_cast<double>(rows_per_rank) * shape.num_ranks * shape.top_k;
    const double mean = pairs / std::max(shape.num_experts, 1);
    // A block too small is decoded and multiplied twice, one too large pays for rows that are not there.
    double best = INFINITY;
    for (const std::int32_t tokens : {8, 16, 24, 32, 48, 64, 80, 96, 112}) {
        if (const double clocks = expected_panel_clocks(tokens, mean); clocks < best) {
            best = clocks;
            config.tokens = tokens;
        }
    }
    const auto units =
        static_cast<std::int32_t>(std::ceil(mean / (config.tokens * config.unit_blocks))) * shape.local_experts();
    // Far enough behind that the first layer's rows are finished when the second layer starts on them, and that returns
    // do not get in the way of the first pulls; no farther, because the ring must hold what lies between.
    config.lag = std::clamp(static_cast<std::int32_t>(std::lround(0.45 * units)), 8, 64);
    // With four rows an expert hardly an expert is idle (e^-4), so the first weights can travel before the counts do.
    config.prefetch_panels = mean >= 4.0 ? 8 : 0;
    return config;
}

std::string to_string(const MegaMoeConfig& config) {
    return "tokens " + std::to_string(config.tokens) + ", unit " + std::to_string(config.unit_blocks) + ", lag " +
           std::to_string(config.lag) + ", ring " +
           (config.ring_blocks == 0 ? "whole" : std::to_string(config.ring_blocks)) + ", prefetch " +
           std::to_string(config.prefetch_panels);
}

}  // namespace megamoe::cuda
