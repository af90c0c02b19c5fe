#include "compute/cuda/mega_moe/heuristics.h"

#include <algorithm>
#include <cmath>

#include "compute/mega/schedule.h"

namespace megamoe::cuda {

MegaMoeConfig choose_config(const mega::Shape& shape, std::int32_t rows_per_rank) {
    MegaMoeConfig config;
    const double pairs = static_cast<double>(rows_per_rank) * shape.num_ranks * shape.top_k;
    const double mean = pairs / std::max(shape.num_experts, 1);
    // One block an expert while weights come from memory: a second block reads them again, from L2 at best. Random routing
    // spreads like a Poisson distribution; a little above the mean few experts need a second block.
    const double wanted = mean + 1.6 * std::sqrt(mean);
    for (const std::int32_t tokens : {8, 16, 24, 32, 48, 64, 80, 96, 112}) {
        config.tokens = tokens;
        if (tokens >= wanted) {
            break;
        }
    }
    const auto units =
        static_cast<std::int32_t>(std::ceil(mean / (config.tokens * config.unit_blocks))) * shape.local_experts();
    // Far enough behind that the first layer's rows are finished when the second layer starts on them, and that returns do not
    // get in the way of the first pulls; no farther, because the ring must hold what lies between.
    config.lag = std::clamp(static_cast<std::int32_t>(std::lround(0.45 * units)), 8, 64);
    // With four rows an expert hardly an expert is idle (e^-4), so the first weights can travel before the counts do.
    config.wide_batch = mean >= 4.0 ? 14 : 0;
    return config;
}

std::string to_string(const MegaMoeConfig& config) {
    return "tokens " + std::to_string(config.tokens) + ", unit " + std::to_string(config.unit_blocks) + ", lag " +
           std::to_string(config.lag) + ", ring " +
           (config.ring_blocks == 0 ? "whole" : std::to_string(config.ring_blocks)) + ", prefetch " +
           std::to_string(config.wide_batch);
}

}  // namespace megamoe::cuda
