// Random numbers and the few functions around them that give the same bits on every machine: integers, and floats made
// with + - * / and sqrt alone. The standard library's distributions, exp and log may differ between machines.
#pragma once

#include <cstdint>
#include <string_view>

namespace megamoe::weights {

// The numbers of one tensor, by index: no order of drawing, so a part can be made without the rest.
class SynthRandom {
  public:
    SynthRandom(std::uint64_t seed, std::string_view name);

    std::uint64_t bits(std::int64_t index) const { return mix(key_ + static_cast<std::uint64_t>(index) * kStep); }

    // In [0, 1), 53 bits.
    double uniform(std::int64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }

    // Mean 0, deviation 1: the sum of twelve 16-bit uniforms, centred. Exact in a float, within +-6.
    float normal(std::int64_t index) const {
        std::int32_t sum = 0;
        for (std::int64_t draw = 3 * index; draw < 3 * index + 3; ++draw) {
            const std::uint64_t lanes = bits(draw);
            sum += static_cast<std::int32_t>((lanes & 0xFFFF) + (lanes >> 16 & 0xFFFF) + (lanes >> 32 & 0xFFFF) +
                                             (lanes >> 48));
        }
        return static_cast<float>(sum - 6 * 0xFFFF) * 0x1p-16F;
    }

  private:
    static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15U;  // SplitMix64: state step and finaliser

    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31);
    }

    std::uint64_t key_;
};

// Relative error about 1e-15 for |x| < 700.
double portable_exp(double x);

// Relative error about 1e-15 for positive normal x.
double portable_log(double x);

// The x for which a standard normal variable is below x with probability p, 0 < p < 1. Relative error about 1e-9.
// Spec  P. Acklam's rational approximation
double normal_quantile(double p);

}  // namespace megamoe::weights
