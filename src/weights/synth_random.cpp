#include "weights/synth_random.h"

#include <array>
#include <cmath>
#include <numbers>

namespace megamoe::weights {
namespace {

template <std::size_t n>
double polynomial(const std::array<double, n>& highest_first, double x) {
    double value = 0;
    for (const double coefficient : highest_first) {
        value = value * x + coefficient;
    }
    return value;
}

}  // namespace

SynthRandom::SynthRandom(std::uint64_t seed, std::string_view name) {
    std::uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
    for (const char c : name) {
        hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001B3U;
    }
    key_ = mix(mix(seed + kStep) ^ hash);
}

double portable_exp(double x) {
    const double turns = std::floor(x / std::numbers::ln2 + 0.5);
    const double r = x - turns * std::numbers::ln2;  // |r| <= 0.35
    double value = 1;
    for (int n = 18; n >= 1; --n) {
        value = 1 + value * r / n;
    }
    return std::ldexp(value, static_cast<int>(turns));
}

double portable_log(double x) {
    int exponent = 0;
    double m = std::frexp(x, &exponent);  // [0.5, 1)
    if (m < std::numbers::sqrt2 / 2) {
        m *= 2;
        --exponent;
    }
    const double s = (m - 1) / (m + 1);  // log m = 2 artanh s, |s| <= 0.172
    double series = 0;
    for (int n = 23; n >= 1; n -= 2) {
        series = series * s * s + 1.0 / n;
    }
    return 2 * s * series + exponent * std::numbers::ln2;
}

double normal_quantile(double p) {
    constexpr std::array<double, 6> kA{-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                       1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
    constexpr std::array<double, 6> kB{-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                                       6.680131188771972e+01,  -1.328068155288572e+01, 1.0};
    constexpr std::array<double, 6> kC{-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                       -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
    constexpr std::array<double, 5> kD{7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                                       3.754408661907416e+00, 1.0};
    constexpr double kTail = 0.02425;
    if (p > 1 - kTail) {
        return -normal_quantile(1 - p);
    }
    if (p < kTail) {
        const double q = std::sqrt(-2 * portable_log(p));
        return polynomial(kC, q) / polynomial(kD, q);
    }
    const double q = p - 0.5;
    return q * polynomial(kA, q * q) / polynomial(kB, q * q);
}

}  // namespace megamoe::weights
