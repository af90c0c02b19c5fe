// The plain form of the row operators: the oracle of the vector forms.
#include <algorithm>
#include <cmath>

#include "compute/cpu/row_kernels.h"
#include "compute/ops/formats.h"

namespace megamoe::cpu {
namespace {

constexpr std::int32_t kLanes = 16;

float rounded(Rounding rounding, float x) {
    return rounding == Rounding::kBf16 ? ops::round_bf16(x) : x;
}

// The tree of a 512-bit register: halves, quarters, pairs.
float sum_lanes(float (&lane)[kLanes]) {
    for (std::int32_t width = kLanes / 2; width > 0; width /= 2) {
        for (std::int32_t i = 0; i < width; ++i) {
            lane[i] += lane[i + width];
        }
    }
    return lane[0];
}

float sum_of_squares(const float* x, std::int32_t n) {
    float lane[kLanes] = {};
    for (std::int32_t i = 0; i < n; ++i) {
        lane[i % kLanes] = std::fma(x[i], x[i], lane[i % kLanes]);
    }
    return sum_lanes(lane);
}

void rms_norm(const float* x, const float* weight, std::int32_t n, float eps, Rounding rounding, float* out) {
    const float root = std::sqrt(sum_of_squares(x, n) / static_cast<float>(n) + eps);
    for (std::int32_t i = 0; i < n; ++i) {
        const float y = x[i] / root;
        out[i] = rounded(rounding, weight == nullptr ? y : y * weight[i]);
    }
}

void head_norm_bf16(float* x, std::int32_t n, float eps) {
    float lane[kLanes] = {};
    for (std::int32_t i = 0; i < n; ++i) {
        lane[i % kLanes] += ops::round_bf16(x[i] * x[i]);
    }
    const float mean = ops::round_bf16(sum_lanes(lane) / static_cast<float>(n));
    const float inverse = ops::round_bf16(1.0F / std::sqrt(ops::round_bf16(mean + eps)));
    for (std::int32_t i = 0; i < n; ++i) {
        x[i] = ops::round_bf16(x[i] * inverse);
    }
}

void quantise_fp8(float* x, std::int32_t n, std::int32_t group) {
    ops::simulate_fp8(x, n, group);
}

void swiglu(const float* gate, const float* up, std::int32_t n, float limit, float weight, Rounding rounding,
            float* out) {
    for (std::int32_t i = 0; i < n; ++i) {
        const float g = std::min(gate[i], limit);
        const float u = std::clamp(up[i], -limit, limit);
        const float sigmoid = 1.0F / (1.0F + std::exp(-g));
        out[i] = rounded(rounding, g * sigmoid * u * weight);
    }
}

void hc_collapse(const float* streams, const float* pre, std::int32_t num_streams, std::int32_t hidden,
                 Rounding rounding, float* out) {
    for (std::int32_t d = 0; d < hidden; ++d) {
        float sum = 0;
        for (std::int32_t j = 0; j < num_streams; ++j) {
            sum = std::fma(pre[j], streams[static_cast<std::int64_t>(j) * hidden + d], sum);
        }
        out[d] = rounded(rounding, sum);
    }
}

void hc_expand(const float* o, const float* post, const float* comb, std::int32_t num_streams, std::int32_t hidden,
               Rounding rounding, float* streams) {
    for (std::int32_t d = 0; d < hidden; ++d) {
        float before[kMaxStreams];
        for (std::int32_t j = 0; j < num_streams; ++j) {
            before[j] = streams[static_cast<std::int64_t>(j) * hidden + d];
        }
        for (std::int32_t k = 0; k < num_streams; ++k) {
            float sum = post[k] * o[d];
            for (std::int32_t j = 0; j < num_streams; ++j) {
                sum = std::fma(comb[j * num_streams + k], before[j], sum);
            }
            streams[static_cast<std::int64_t>(k) * hidden + d] = rounded(rounding, sum);
        }
    }
}

}  // namespace

const RowKernels kRowScalar{
    .needs = Isa::kScalar,
    .rms_norm = rms_norm,
    .head_norm_bf16 = head_norm_bf16,
    .quantise_fp8 = quantise_fp8,
    .swiglu = swiglu,
    .hc_collapse = hc_collapse,
    .hc_expand = hc_expand,
};

}  // namespace megamoe::cpu
