#include "compute/ops/formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace megamoe::ops {
namespace {

constexpr std::array<float, 8> kE2m1{0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
constexpr float kMaxE4m3 = 448.0F;
constexpr float kMaxE2m1 = 6.0F;

float max_magnitude(const float* x, std::int64_t count, float floor) {
    float amax = floor;
    for (std::int64_t i = 0; i < count; ++i) {
        amax = std::max(amax, std::fabs(x[i]));
    }
    return amax;
}

}  // namespace

float from_e4m3(std::uint8_t code) {
    const int exponent = (code >> 3) & 15;
    const int mantissa = code & 7;
    const float sign = (code & 0x80) != 0 ? -1.0F : 1.0F;
    if (exponent == 15 && mantissa == 7) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    return exponent == 0 ? sign * std::ldexp(static_cast<float>(mantissa), -9)
                         : sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

std::uint8_t to_e4m3(float x) {
    if (std::isnan(x)) {
        return 0x7F;
    }
    const auto sign = std::signbit(x) ? 0x80U : 0U;
    const float a = std::min(std::fabs(x), kMaxE4m3);
    if (a < 0x1p-6F) {
        // Subnormal codes are multiples of 2^-9, the unit in the last place of 2^14: the addition rounds to nearest
        // even. A carry out of the three bits is the code of 2^-6, as it should be.
        constexpr float kAligned = 0x1p14F;
        return static_cast<std::uint8_t>(
            sign | (std::bit_cast<std::uint32_t>(a + kAligned) - std::bit_cast<std::uint32_t>(kAligned)));
    }
    auto bits = std::bit_cast<std::uint32_t>(a);
    bits += 0x7FFFFU + ((bits >> 20) & 1U);  // keep 3 of 23 mantissa bits
    return static_cast<std::uint8_t>(sign | ((bits >> 20) - ((127U - 7U) << 3)));
}

float from_e2m1(std::uint8_t code) {
    const float magnitude = kE2m1[code & 7U];
    return (code & 8U) != 0 ? -magnitude : magnitude;
}

std::uint8_t to_e2m1(float x) {
    const float a = std::min(std::fabs(x), kMaxE2m1);
    const auto sign = x < 0 ? 8U : 0U;  // -0 becomes code 0
    // Steps of 1/2, 1 and 2 in [0, 2), [2, 4) and [4, 6]; each interval starts at an even code, so even steps are even
    // codes.
    const float code = a < 2 ? std::nearbyint(a * 2) : a < 4 ? std::nearbyint(a) + 2 : std::nearbyint(a / 2) + 4;
    return static_cast<std::uint8_t>(sign | static_cast<unsigned>(code));
}

float from_e8m0(std::uint8_t code) {
    return code == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, code - 127);
}

float pow2_ceil(float v) {
    const auto bits = std::bit_cast<std::uint32_t>(v);
    const std::uint32_t up = (bits & 0x7FFFFFU) != 0 ? 1 : 0;
    return std::bit_cast<float>(((bits >> 23) + up) << 23);
}

void simulate_fp8(float* x, std::int64_t count, std::int32_t group) {
    for (std::int64_t begin = 0; begin < count; begin += group) {
        const std::int64_t n = std::min<std::int64_t>(group, count - begin);
        const float scale = pow2_ceil(max_magnitude(x + begin, n, 1e-4F) * (1.0F / kMaxE4m3));
        for (std::int64_t i = begin; i < begin + n; ++i) {
            x[i] = from_e4m3(to_e4m3(x[i] / scale)) * scale;
        }
    }
}

void simulate_fp4(float* x, std::int64_t count, std::int32_t group) {
    for (std::int64_t begin = 0; begin < count; begin += group) {
        const std::int64_t n = std::min<std::int64_t>(group, count - begin);
        const float scale = pow2_ceil(max_magnitude(x + begin, n, 6 * 0x1p-126F) / kMaxE2m1);
        for (std::int64_t i = begin; i < begin + n; ++i) {
            x[i] = from_e2m1(to_e2m1(x[i] / scale)) * scale;
        }
    }
}

}  // namespace megamoe::ops
