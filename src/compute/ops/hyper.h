// The coefficients of a manifold-constrained hyper-connection: from the mixed stream values to pre, post and comb.
#pragma once

#include <cstdint>
#include <span>

namespace megamoe::ops {

struct HyperShape {
    std::int32_t num_streams = 0;  // [X]
    std::int32_t iters = 0;        // column normalisations in all
    float eps = 0;                 // hc_eps
};

// One token.
//
// In    mix   [(2+X)*X]: fn * vec(streams) * rho
//       scale [3], base [(2+X)*X]
// Out   pre [X], post [X], comb [X, X] (columns sum to about 1)
// Spec  model spec, 3.3 steps 4 to 8 (its check example is a test)
void hyper_coefficients(const HyperShape& shape, std::span<const float> mix, std::span<const float> scale,
                        std::span<const float> base, std::span<float> pre, std::span<float> post,
                        std::span<float> comb);

// pre[j] = sigmoid(scale * mix[j] + base[j]) + eps, the head's only coefficients.
void hyper_pre(std::span<const float> mix, float scale, std::span<const float> base, float eps, std::span<float> pre);

}  // namespace megamoe::ops
