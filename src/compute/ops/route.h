// Expert routing: gate logits to expert ids and mixing weights, one token at a time.
#pragma once

#include <cstdint>
#include <span>

namespace megamoe::ops {

// s(z) = sqrt(softplus(z)), safe at both ends.
float sqrt_softplus(float z);

// Picks the top_k = expert_id.size() experts of one token by score + bias.
//
// In    score     [num_experts] f32, >= 0
//       bias      [num_experts] f32; moves the choice, never the weight
// Out   expert_id [top_k], descending by biased score; equal: lower id first
// Spec  model spec, 3.9
void select_experts(std::span<const float> score, std::span<const float> bias, std::span<std::int32_t> expert_id);

// weight[j] = score[expert_id[j]] / (sum of those + floor) * scale, the sum in the order of expert_id.
// `floor` is 1e-20 in profile hf and 0 in ds.
void mixing_weights(std::span<const float> score, std::span<const std::int32_t> expert_id, float floor, float scale,
                    std::span<float> weight);

}  // namespace megamoe::ops
