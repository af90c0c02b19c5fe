#include "compute/ops/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "compute/ops/formats.h"

namespace megamoe::ops {

std::vector<float> rope_frequencies(const ModelGeometry& g, RopeKind kind) {
    const double rope_dim = g.rope_dim;
    const double base = kind == RopeKind::kMain ? g.rope_theta : g.compress_rope_theta;
    // The pair index at which a full context of original_max_position makes n turns.
    const auto corr = [&](double turns) {
        return rope_dim * std::log(g.yarn.original_max_position / (2 * std::numbers::pi * turns)) /
               (2 * std::log(base));
    };
    const double lo = std::max(std::floor(corr(g.yarn.beta_fast)), 0.0);
    const double hi = std::min(std::ceil(corr(g.yarn.beta_slow)), rope_dim - 1);
    std::vector<float> out(static_cast<std::size_t>(g.rope_dim / 2));
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto pair = static_cast<double>(i);
        double f = std::pow(base, -2.0 * pair / rope_dim);
        if (kind == RopeKind::kCompress) {
            const double u = std::clamp((pair - lo) / std::max(hi - lo, 0.001), 0.0, 1.0);
            f = f * (1 - u) + f / g.yarn.factor * u;
        }
        out[i] = static_cast<float>(f);
    }
    return out;
}

void rope_angles(std::span<const float> frequencies, std::int32_t position, std::span<float> cos_sin) {
    MM_DCHECK(cos_sin.size() == 2 * frequencies.size(), "cos_sin", cos_sin.size());
    const auto p = static_cast<float>(position);
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
        const float angle = p * frequencies[i];
        cos_sin[2 * i] = std::cos(angle);
        cos_sin[2 * i + 1] = std::sin(angle);
    }
}

void rotate(std::span<float> head, std::span<const float> cos_sin, bool inverse, bool round_to_bf16) {
    const auto tail = head.last(cos_sin.size());
    for (std::size_t i = 0; i < tail.size(); i += 2) {
        const float c = cos_sin[i];
        const float s = inverse ? -cos_sin[i + 1] : cos_sin[i + 1];
        const float v0 = tail[i] * c - tail[i + 1] * s;
        const float v1 = tail[i] * s + tail[i + 1] * c;
        tail[i] = round_to_bf16 ? round_bf16(v0) : v0;
        tail[i + 1] = round_to_bf16 ? round_bf16(v1) : v1;
    }
}

void hadamard_bf16(std::span<float> x) {
    const std::size_t n = x.size();
    MM_DCHECK((n & (n - 1)) == 0, "size", n);
    for (std::size_t half = 1; half < n; half *= 2) {
        for (std::size_t block = 0; block < n; block += 2 * half) {
            for (std::size_t i = block; i < block + half; ++i) {
                const float a = x[i];
                const float b = x[i + half];
                x[i] = a + b;
                x[i + half] = a - b;
            }
        }
    }
    const float scale = 1.0F / std::sqrt(static_cast<float>(n));
    for (float& v : x) {
        v = round_bf16(v * scale);
    }
}

}  // namespace megamoe::ops
