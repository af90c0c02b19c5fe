// The row operators over a vector type V of 16 float32 lanes (vec_avx512.h, vec_avx2.h). Each operation, its order and
// its rounding are those of row_ops_scalar.cpp; exp() alone is another polynomial.
#pragma once

#include <cmath>
#include <cstring>

#include "compute/cpu/row_kernels.h"
#include "compute/cpu/simd_math.h"

namespace megamoe::cpu {
namespace {

template <class V>
void rms_norm(const float* x, const float* weight, std::int32_t n, float eps, Rounding rounding, float* out) {
    using F = typename V::F;
    F squares = V::zero();
    for (std::int32_t i = 0; i < n; i += kLanes) {
        const F v = V::load(x, i, n);
        squares = V::fma(v, v, squares);
    }
    const F root = V::set1(std::sqrt(V::sum(squares) / static_cast<float>(n) + eps));
    for (std::int32_t i = 0; i < n; i += kLanes) {
        F y = V::div(V::load(x, i, n), root);
        if (weight != nullptr) {
            y = V::mul(y, V::load(weight, i, n));
        }
        V::store(out, i, n, rounded<V>(rounding, y));
    }
}

template <class V>
void head_norm_bf16(float* x, std::int32_t n, float eps) {
    using F = typename V::F;
    F squares = V::zero();
    for (std::int32_t i = 0; i < n; i += kLanes) {
        const F v = V::load(x, i, n);
        squares = V::add(squares, V::round_bf16(V::mul(v, v)));
    }
    const float mean = rounded_bf16<V>(V::sum(squares) / static_cast<float>(n));
    const F inverse = V::set1(rounded_bf16<V>(1.0F / std::sqrt(rounded_bf16<V>(mean + eps))));
    for (std::int32_t i = 0; i < n; i += kLanes) {
        V::store(x, i, n, V::round_bf16(V::mul(V::load(x, i, n), inverse)));
    }
}

// ops::pow2_ceil(); that one is inline, and an inline function must not be compiled here (see vec_avx512.h).
inline float power_of_two_above(float v) {
    std::uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    bits = ((bits >> 23) + ((bits & 0x7FFFFFU) != 0 ? 1U : 0U)) << 23;
    std::memcpy(&v, &bits, sizeof v);
    return v;
}

// Rounds |x| <= 448 to the nearest e4m3 value. Adding and taking away 1.5 * 2^23 steps rounds to a multiple of the
// step, ties to even; the step is 2^-3 of x's power of two, and 2^-9 among the subnormals.
template <class V>
typename V::F round_e4m3(typename V::F x) {
    using F = typename V::F;
    const F power = V::max(V::bit_and(x, V::set1(INFINITY)), V::set1(0x1p-6F));
    const F shift = V::mul(power, V::set1(0x1.8p20F));
    const F sign = V::bit_and(x, V::set1(-0.0F));
    return V::bit_or(V::sub(V::add(x, shift), shift), sign);
}

template <class V>
void quantise_fp8(float* x, std::int32_t n, std::int32_t group) {
    using F = typename V::F;
    for (std::int32_t begin = 0; begin < n; begin += group) {
        const std::int32_t end = n - begin < group ? n : begin + group;
        F largest = V::set1(1e-4F);
        for (std::int32_t i = begin; i < end; i += kLanes) {
            const F v = V::load(x, i, end);
            largest = V::max(largest, V::max(v, V::sub(V::zero(), v)));
        }
        const float power = power_of_two_above(V::max(largest) * (1.0F / 448));
        const F scale = V::set1(power);
        const F inverse = V::set1(1.0F / power);  // exact, so multiplying is dividing
        const F limit = V::set1(448.0F);
        for (std::int32_t i = begin; i < end; i += kLanes) {
            const F v = V::mul(V::load(x, i, end), inverse);
            const F clamped = V::max(V::set1(-448.0F), V::min(limit, v));
            V::store(x, i, end, V::mul(round_e4m3<V>(clamped), scale));
        }
    }
}

template <class V>
void swiglu(const float* gate, const float* up, std::int32_t n, float limit, float weight, Rounding rounding,
            float* out) {
    using F = typename V::F;
    const F one = V::set1(1.0F);
    for (std::int32_t i = 0; i < n; i += kLanes) {
        const F g = V::min(V::load(gate, i, n), V::set1(limit));
        const F u = V::max(V::min(V::load(up, i, n), V::set1(limit)), V::set1(-limit));
        const F sigmoid = V::div(one, V::add(one, exp<V>(V::sub(V::zero(), g))));
        const F product = V::mul(V::mul(V::mul(g, sigmoid), u), V::set1(weight));
        V::store(out, i, n, rounded<V>(rounding, product));
    }
}

template <class V>
void hc_collapse(const float* streams, const float* pre, std::int32_t num_streams, std::int32_t hidden,
                 Rounding rounding, float* out) {
    using F = typename V::F;
    for (std::int32_t d = 0; d < hidden; d += kLanes) {
        F sum = V::zero();
        for (std::int32_t j = 0; j < num_streams; ++j) {
            sum = V::fma(V::set1(pre[j]), V::load(streams + static_cast<std::int64_t>(j) * hidden, d, hidden), sum);
        }
        V::store(out, d, hidden, rounded<V>(rounding, sum));
    }
}

template <class V>
void hc_expand(const float* o, const float* post, const float* comb, std::int32_t num_streams, std::int32_t hidden,
               Rounding rounding, float* streams) {
    using F = typename V::F;
    for (std::int32_t d = 0; d < hidden; d += kLanes) {
        F before[kMaxStreams];
        for (std::int32_t j = 0; j < num_streams; ++j) {
            before[j] = V::load(streams + static_cast<std::int64_t>(j) * hidden, d, hidden);
        }
        const F added = V::load(o, d, hidden);
        for (std::int32_t k = 0; k < num_streams; ++k) {
            F sum = V::mul(V::set1(post[k]), added);
            for (std::int32_t j = 0; j < num_streams; ++j) {
                sum = V::fma(V::set1(comb[j * num_streams + k]), before[j], sum);
            }
            V::store(streams + static_cast<std::int64_t>(k) * hidden, d, hidden, rounded<V>(rounding, sum));
        }
    }
}

template <class V>
constexpr RowKernels row_kernels_of(Isa needs) {
    return {
        .needs = needs,
        .rms_norm = rms_norm<V>,
        .head_norm_bf16 = head_norm_bf16<V>,
        .quantise_fp8 = quantise_fp8<V>,
        .swiglu = swiglu<V>,
        .hc_collapse = hc_collapse<V>,
        .hc_expand = hc_expand<V>,
    };
}

}  // namespace
}  // namespace megamoe::cpu
