// Random matrices in the released formats, for the tests of this folder and the micro benchmarks.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "compute/cpu/isa.h"
#include "compute/ops/formats.h"
#include "compute/ops/matrix.h"

namespace megamoe::cpu {

inline std::vector<Isa> isas_of_this_machine() {
    std::vector<Isa> isas;
    for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
        if (isa <= detect_isa()) {
            isas.push_back(isa);
        }
    }
    return isas;
}

inline std::vector<float> random_floats(std::int64_t count, std::uint32_t seed, bool bf16 = false) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> x(static_cast<std::size_t>(count));
    for (float& v : x) {
        v = bf16 ? ops::round_bf16(normal(random)) : normal(random);
    }
    return x;
}

// Owns what its view points to. Every finite code occurs, subnormal ones included; scales differ from block to block.
class RandomMatrix {
  public:
    RandomMatrix(ops::WeightFormat format, ops::ScaleFormat scale_format, std::int32_t rows, std::int32_t cols,
                 std::uint32_t seed)
        : random_(seed) {
        view_ = {format, scale_format, rows, cols, nullptr, nullptr};
        if (format != ops::WeightFormat::kFp8 && format != ops::WeightFormat::kFp4) {
            view_.scale_format = ops::ScaleFormat::kNone;
        }
        const ops::MatrixView unscaled{format, ops::ScaleFormat::kNone, rows, cols, nullptr, nullptr};
        weight_.resize(static_cast<std::size_t>(ops::matrix_bytes(unscaled)));
        scale_.resize(static_cast<std::size_t>(ops::matrix_bytes(view_) - ops::matrix_bytes(unscaled)));
        fill_weight();
        fill_scale();
        view_.weight = weight_.data();
        view_.scale = scale_.data();
    }

    const ops::MatrixView& view() const { return view_; }

  private:
    template <class T>
    static void put(std::vector<std::uint8_t>& to, std::size_t index, T value) {
        const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(T)>>(value);
        std::copy(bytes.begin(), bytes.end(), to.begin() + static_cast<std::ptrdiff_t>(index * sizeof(T)));
    }

    void fill_weight() {
        std::normal_distribution<float> normal;
        switch (view_.format) {
            case ops::WeightFormat::kF32:
                for (std::size_t i = 0; i < weight_.size() / 4; ++i) {
                    put(weight_, i, normal(random_));
                }
                break;
            case ops::WeightFormat::kBf16:
                for (std::size_t i = 0; i < weight_.size() / 2; ++i) {
                    put(weight_, i, ops::to_bf16(normal(random_)));
                }
                break;
            default:
                for (auto& byte : weight_) {
                    byte = static_cast<std::uint8_t>(random_());
                    if (view_.format == ops::WeightFormat::kFp8 && (byte & 0x7F) == 0x7F) {
                        byte = 0;  // NaN
                    }
                }
        }
    }

    void fill_scale() {
        std::uniform_int_distribution<int> exponent(115, 125);
        if (view_.scale_format == ops::ScaleFormat::kE8m0) {
            for (auto& byte : scale_) {
                byte = static_cast<std::uint8_t>(exponent(random_));
            }
        } else {
            for (std::size_t i = 0; i < scale_.size() / 4; ++i) {
                put(scale_, i, 0.001F * static_cast<float>(exponent(random_)));
            }
        }
    }

    std::mt19937 random_;
    ops::MatrixView view_;
    std::vector<std::uint8_t> weight_;
    std::vector<std::uint8_t> scale_;
};

}  // namespace megamoe::cpu
