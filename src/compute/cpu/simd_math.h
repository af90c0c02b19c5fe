// What the vector forms of the row operators and of attention share. V is Avx512 or Avx2 (vec_avx512.h, vec_avx2.h).
#pragma once

#include "compute/cpu/row_ops.h"

namespace megamoe::cpu {
namespace {

constexpr std::int32_t kLanes = 16;

template <class V>
typename V::F rounded(Rounding rounding, typename V::F x) {
    return rounding == Rounding::kBf16 ? V::round_bf16(x) : x;
}

// e^x to about 1 ulp: x = n ln 2 + r, |r| <= ln(2) / 2, and the Taylor polynomial of degree 7 for e^r, whose remainder
// is below 2^-27. Outside +-150 the result has long been infinity or zero.
template <class V>
typename V::F exp(typename V::F x) {
    using F = typename V::F;
    x = V::max(V::set1(-150.0F), V::min(V::set1(150.0F), x));  // this operand order keeps a NaN
    const F n = V::round_to_integer(V::mul(x, V::set1(1.44269504F)));
    F r = V::fma(n, V::set1(-0x1.62E4p-1F), x);  // ln 2 in two parts; n times the first is exact
    r = V::fma(n, V::set1(-0x1.7F7D1Cp-20F), r);
    F p = V::set1(1.0F / 5040);
    p = V::fma(p, r, V::set1(1.0F / 720));
    p = V::fma(p, r, V::set1(1.0F / 120));
    p = V::fma(p, r, V::set1(1.0F / 24));
    p = V::fma(p, r, V::set1(1.0F / 6));
    p = V::fma(p, r, V::set1(0.5F));
    p = V::fma(p, r, V::set1(1.0F));
    p = V::fma(p, r, V::set1(1.0F));
    return V::scale_by_power(p, n);
}

// One value, rounded as the vectors are.
template <class V>
float rounded_bf16(float x) {
    float lanes[kLanes];
    V::store(lanes, V::round_bf16(V::set1(x)));
    return lanes[0];
}

}  // namespace
}  // namespace megamoe::cpu
