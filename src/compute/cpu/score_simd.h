// Products of queries with latents or keys, over a vector type V of 16 float32 lanes (vec_avx512.h, vec_avx2.h) and a
// product P (see FloatProduct). Heads lie in the lanes: queries are transposed once to panels of 16 heads, and each
// word of a row is broadcast to them. It is the register tile of the matrix product.
#pragma once

#include "compute/cpu/row_kernels.h"
#include "compute/cpu/simd_math.h"

namespace megamoe::cpu {
namespace {

// Products of float32 values. A word is what one lane multiplies at a time: here a value, in PairProduct two.
template <class Vector>
struct FloatProduct {
    using V = Vector;
    using F = typename V::F;
    static constexpr std::int32_t kPack = 1;

    static F mul_add(F sum, F words, F word) { return V::fma(words, word, sum); }
    static F query_words(const float* q) { return V::load(q); }
    static F value_words(const Attend& a, std::int32_t row, std::int32_t d) {
        const std::int64_t at = static_cast<std::int64_t>(row) * a.dim + d;
        return a.kv_bf16 ? V::load_bf16(static_cast<const std::uint16_t*>(a.kv) + at)
                         : V::load(static_cast<const float*>(a.kv) + at);
    }
    static F weight_words(const F* e) { return e[0]; }
};

constexpr std::int32_t panels_of(std::int32_t heads) {
    return (heads + kLanes - 1) / kLanes;
}

// Panels that share a broadcast: 4, 2 or 1.
template <class V>
constexpr std::int32_t panels_at_once(std::int32_t left) {
    return left >= V::kScorePanels ? V::kScorePanels : left >= 2 ? 2 : 1;
}

// Rows of a score tile: a lone panel leaves registers for two more.
template <class V>
constexpr std::int32_t kMaxScoreRows = V::kScoreRows + 2;

// Queries [heads, dim] to words [group of panels][word][panel of the group][16 heads]; heads that do not exist are
// zero.
template <class P>
void pack_queries(const float* q, std::int32_t heads, std::int32_t dim, float* out) {
    using V = typename P::V;
    const std::int32_t words = dim / P::kPack;
    for (std::int32_t panel = 0, group; panel < panels_of(heads); panel += group) {
        group = panels_at_once<V>(panels_of(heads) - panel);
        for (std::int32_t p = 0; p < group; ++p) {
            for (std::int32_t w = 0; w < words; w += kLanes) {
                typename P::F block[kLanes];
                for (std::int32_t lane = 0; lane < kLanes; ++lane) {
                    const std::int32_t head = (panel + p) * kLanes + lane;
                    block[lane] = head < heads
                                      ? P::query_words(q + static_cast<std::int64_t>(head) * dim + w * P::kPack)
                                      : V::zero();
                }
                V::transpose(block);
                for (std::int32_t lane = 0; lane < kLanes; ++lane) {
                    V::store(out + ((w + lane) * group + p) * kLanes, block[lane]);
                }
            }
        }
        out += group * words * kLanes;
    }
}

// Where the words of each row of latents or keys lie. Codes that are multiplied as float32 are widened first, a tile of
// rows at a time, into `buffer`.
template <class P>
class RowWords {
  public:
    RowWords(const void* rows, bool bf16, std::int32_t dim, std::int32_t num_rows, float* buffer)
        : rows_(static_cast<const char*>(rows)),
          widens_(bf16 && P::kPack == 1),
          dim_(dim),
          num_rows_(num_rows),
          row_bytes_(static_cast<std::int64_t>(dim) * (bf16 ? 2 : 4)),
          buffer_(buffer) {}

    // Rows beyond the last repeat it.
    template <std::int32_t kRows>
    void locate(std::int32_t first, const char* (&at)[kRows]) const {
        for (std::int32_t r = 0; r < kRows; ++r) {
            const std::int32_t row = first + r < num_rows_ ? first + r : num_rows_ - 1;
            at[r] = rows_ + row * row_bytes_;
            if (widens_) {
                float* wide = buffer_ + r * dim_;
                for (std::int32_t d = 0; d < dim_; d += kLanes) {
                    P::V::store(wide + d, P::V::load_bf16(reinterpret_cast<const std::uint16_t*>(at[r]) + d));
                }
                at[r] = reinterpret_cast<const char*>(wide);
            }
        }
    }

  private:
    const char* rows_;
    bool widens_;
    std::int32_t dim_;
    std::int32_t num_rows_;
    std::int64_t row_bytes_;
    float* buffer_;
};

// sum[r][p] += over words [begin, end): row r, broadcast, times panel p of a group of packed queries.
// Always inline, so that the sums live in registers.
template <class P, std::int32_t kRows, std::int32_t kPanels>
[[gnu::always_inline]] inline void multiply(const float* queries, const char* const (&row)[kRows], std::int32_t begin,
                                            std::int32_t end, typename P::F (&sum)[kRows][kPanels]) {
    using V = typename P::V;
    using F = typename P::F;
    const float* q = queries + static_cast<std::int64_t>(begin) * kPanels * kLanes;
    for (std::int64_t w = begin; w < end; ++w, q += kPanels * kLanes) {
        F panel[kPanels];
#pragma GCC unroll 4
        for (std::int32_t p = 0; p < kPanels; ++p) {
            panel[p] = V::load(q + p * kLanes);
        }
#pragma GCC unroll 8
        for (std::int32_t r = 0; r < kRows; ++r) {
            const F word = V::broadcast(row[r] + w * 4);
#pragma GCC unroll 4
            for (std::int32_t p = 0; p < kPanels; ++p) {
                sum[r][p] = P::mul_add(sum[r][p], panel[p], word);
            }
        }
    }
}

}  // namespace
}  // namespace megamoe::cpu
