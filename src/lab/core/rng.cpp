#include "lab/core/rng.h"

#include <bit>
#include <cmath>

namespace megamoe::lab {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;

__extension__ using Wide = unsigned __int128;

}  // namespace

std::uint64_t SplitMix64::next() {
    state_ += kGolden;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

std::uint64_t fnv1a64(std::string_view bytes, std::uint64_t hash) {
    for (const char byte : bytes) {
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
    }
    return hash;
}

Rng Rng::stream(std::uint64_t seed, std::string_view purpose, std::uint64_t index) {
    SplitMix64 seeder(seed ^ fnv1a64(purpose) ^ (index * kGolden));
    std::array<std::uint64_t, 4> state;
    for (std::uint64_t& word : state) {
        word = seeder.next();
    }
    return Rng(state);
}

std::uint64_t Rng::next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
}

std::uint64_t Rng::below(std::uint64_t n) {
    // Multiply-shift: the high word of x*n is uniform once the low words that would favour small results are rejected.
    const std::uint64_t reject_below = (0 - n) % n;
    for (;;) {
        const Wide product = static_cast<Wide>(next()) * n;
        if (static_cast<std::uint64_t>(product) >= reject_below) {
            return static_cast<std::uint64_t>(product >> 64);
        }
    }
}

double Rng::real() {
    return static_cast<double>(next() >> 11) * 0x1.0p-53;
}

double Rng::exponential() {
    return -std::log1p(-real());
}

double Rng::normal() {
    // Polar method; the second value of each pair is dropped, so that a stream has no hidden state.
    for (;;) {
        const double u = 2 * real() - 1;
        const double v = 2 * real() - 1;
        const double s = u * u + v * v;
        if (s > 0 && s < 1) {
            return u * std::sqrt(-2 * std::log(s) / s);
        }
    }
}

double Rng::gamma(double shape) {
    if (shape < 1) {
        const double boost = std::pow(1 - real(), 1 / shape);
        return gamma(shape + 1) * boost;
    }
    // Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
    const double d = shape - 1.0 / 3;
    const double c = 1 / std::sqrt(9 * d);
    for (;;) {
        const double x = normal();
        const double t = 1 + c * x;
        if (t <= 0) {
            continue;
        }
        const double v = t * t * t;
        const double u = 1 - real();
        if (std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
            return d * v;
        }
    }
}

}  // namespace megamoe::lab
