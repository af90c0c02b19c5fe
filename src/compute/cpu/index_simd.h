// The indexer's scores: products as in attention, rectified, weighted and summed over the heads.
#pragma once

#include "compute/cpu/score_simd.h"

namespace megamoe::cpu {
namespace {

// Scores of a tile of rows against a group of panels, weighted and summed over these heads.
template <class P, std::int32_t kRows, std::int32_t kPanels>
void index_tile(const IndexScores& s, const float* queries, std::int32_t panel, const RowWords<P>& words,
                std::int32_t first) {
    using V = typename P::V;
    using F = typename P::F;
    const char* row[kRows];
    words.template locate<kRows>(first, row);
    F sum[kRows][kPanels];
#pragma GCC unroll 8
    for (std::int32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (std::int32_t p = 0; p < kPanels; ++p) {
            sum[r][p] = V::zero();
        }
    }
    multiply<P, kRows, kPanels>(queries, row, 0, s.dim / P::kPack, sum);
    const bool bf16 = s.rounding == Rounding::kBf16;
    const bool last = (panel + kPanels) * kLanes >= s.heads;
#pragma GCC unroll 8
    for (std::int32_t r = 0; r < kRows; ++r) {
        F total = V::zero();
#pragma GCC unroll 4
        for (std::int32_t p = 0; p < kPanels; ++p) {
            const F weight = V::load(s.weight, (panel + p) * kLanes, s.heads);
            const F positive = V::max(bf16 ? V::round_bf16(sum[r][p]) : sum[r][p], V::zero());
            total = bf16 ? V::add(total, V::round_bf16(V::mul(positive, weight))) : V::fma(weight, positive, total);
        }
        if (first + r < s.rows) {
            const float score = (panel == 0 ? 0.0F : s.score[first + r]) + V::sum(total);
            s.score[first + r] = bf16 && last ? rounded_bf16<V>(score) : score;
        }
    }
}

template <class P>
void index_scores_of(const IndexScores& s) {
    using V = typename P::V;
    float* row_buffer = s.scratch;
    float* queries = row_buffer + static_cast<std::int64_t>(kMaxScoreRows<V>) * s.dim;
    pack_queries<P>(s.q, s.heads, s.dim, queries);
    const RowWords<P> words(s.keys, s.keys_bf16, s.dim, s.rows, row_buffer);
    for (std::int32_t panel = 0, group; panel < panels_of(s.heads); panel += group) {
        group = panels_at_once<V>(panels_of(s.heads) - panel);
        const auto rows = [&](auto tile, std::int32_t height) {
            for (std::int32_t first = 0; first < s.rows; first += height) {
                tile(s, queries, panel, words, first);
            }
        };
        if (group == V::kScorePanels) {
            rows(index_tile<P, V::kScoreRows, V::kScorePanels>, V::kScoreRows);
        } else if (group == 2) {
            rows(index_tile<P, V::kScoreRows, 2>, V::kScoreRows);
        } else {
            rows(index_tile<P, kMaxScoreRows<V>, 1>, kMaxScoreRows<V>);
        }
        queries += static_cast<std::int64_t>(group) * kLanes * (s.dim / P::kPack);
    }
}

}  // namespace
}  // namespace megamoe::cpu
