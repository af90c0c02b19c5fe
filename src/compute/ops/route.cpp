#include "compute/ops/route.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace megamoe::ops {

float sqrt_softplus(float z) {
    return std::sqrt(std::max(z, 0.0F) + std::log1p(std::exp(-std::abs(z))));
}

void select_experts(std::span<const float> score, std::span<const float> bias, std::span<std::int32_t> expert_id) {
    MM_CHECK(expert_id.size() <= score.size() && bias.size() == score.size(), "experts", score.size(), "top_k",
             expert_id.size());
    // Insertion into a short descending list: top_k is 16 at most, and a strict comparison keeps the lower id on a tie.
    std::size_t filled = 0;
    const auto key = [&](std::int32_t e) {
        return score[static_cast<std::size_t>(e)] + bias[static_cast<std::size_t>(e)];
    };
    for (std::size_t e = 0; e < score.size(); ++e) {
        const auto id = static_cast<std::int32_t>(e);
        if (filled == expert_id.size() && !(key(id) > key(expert_id[filled - 1]))) {
            continue;
        }
        std::size_t at = filled < expert_id.size() ? filled++ : filled - 1;
        for (; at > 0 && key(id) > key(expert_id[at - 1]); --at) {
            expert_id[at] = expert_id[at - 1];
        }
        expert_id[at] = id;
    }
}

void mixing_weights(std::span<const float> score, std::span<const std::int32_t> expert_id, float floor, float scale,
                    std::span<float> weight) {
    float sum = 0;
    for (const auto id : expert_id) {
        sum += score[static_cast<std::size_t>(id)];
    }
    for (std::size_t j = 0; j < expert_id.size(); ++j) {
        weight[j] = score[static_cast<std::size_t>(expert_id[j])] / (sum + floor) * scale;
    }
}

}  // namespace megamoe::ops
