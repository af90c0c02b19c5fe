// Random numbers that are the same on every machine and standard library. The distributions of <random> are not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace megamoe::lab {

// Seeds other generators; never used as a stream itself.
class SplitMix64 {
  public:
    explicit SplitMix64(std::uint64_t state) : state_(state) {}
    std::uint64_t next();

  private:
    std::uint64_t state_;
};

// `hash` goes on from an earlier call.
std::uint64_t fnv1a64(std::string_view bytes, std::uint64_t hash = 0xCBF29CE484222325);

// xoshiro256**.
class Rng {
  public:
    explicit Rng(const std::array<std::uint64_t, 4>& state) : state_(state) {}

    // The independent stream of one purpose and index, so that row i does not change when the number of rows grows.
    // In    purpose  "len_in", "len_out", "tok", "arr", "perm", ...; a new use gets a new word
    // Spec  bench.md 4.1, rule 2
    static Rng stream(std::uint64_t seed, std::string_view purpose, std::uint64_t index);

    std::uint64_t next();
    // [0, n), n >= 1, every value equally likely.
    std::uint64_t below(std::uint64_t n);
    // [0, 1), in steps of 2^-53.
    double real();
    double exponential();        // mean 1
    double normal();             // mean 0, sd 1
    double gamma(double shape);  // shape > 0, scale 1

  private:
    std::array<std::uint64_t, 4> state_;
};

// Fisher-Yates.
template <class T>
void shuffle(std::span<T> items, Rng& rng) {
    for (std::size_t i = items.size(); i > 1; --i) {
        std::swap(items[i - 1], items[static_cast<std::size_t>(rng.below(i))]);
    }
}

}  // namespace megamoe::lab
