// Attention and indexer scores over a vector type V of 16 float32 lanes and a product P (see FloatProduct).
//
// Scores have heads in their lanes: queries are transposed to panels of 16 heads, a latent's words are broadcast, and the
// softmax needs no sum across lanes. Values have dimensions in their lanes: latents are copied once to blocks of
// dimensions that stay in L1 while every head reads them. Both products are the register tile of the matrix product.
#pragma once

#include <cstring>

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

// Queries [heads, dim] to words [group of panels][word][panel of the group][16 heads]; heads that do not exist are zero.
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
template <class P, std::int32_t kRows, std::int32_t kPanels>
void multiply(const float* queries, const char* const (&row)[kRows], std::int32_t begin, std::int32_t end,
              typename P::F (&sum)[kRows][kPanels]) {
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

template <class P>
class Attention {
    using V = typename P::V;
    using F = typename P::F;
    static constexpr std::int32_t kChunkWords = 128;  // times 256 bytes: what stays in L1 while many tiles read it

  public:
    explicit Attention(const Attend& a)
        : a_(a), panels_(panels_of(a.heads)), pairs_((a.rows + P::kPack - 1) / P::kPack) {
        float* free =
            reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(a.scratch) + 63) & ~std::uintptr_t{63});
        const auto take = [&free](std::int64_t floats) {
            float* p = free;
            free += (floats + 15) / 16 * 16;
            return p;
        };
        queries_ = take(static_cast<std::int64_t>(panels_) * kLanes * a.dim / P::kPack);
        values_ = take(static_cast<std::int64_t>(pairs_) * a.dim);
        scores_ = take(static_cast<std::int64_t>(panels_) * kLanes * panel_rows());
        totals_ = take(static_cast<std::int64_t>(panels_) * kLanes);
        row_buffer_ = take(static_cast<std::int64_t>(kMaxScoreRows<V>) * a.dim);
    }

    void run() {
        pack_queries<P>(a_.q, a_.heads, a_.dim, queries_);
        score();
        soften();
        if (a_.probabilities != nullptr) {
            dump();
        }
        weigh();
        pack_values();
        mix();
    }

  private:
    // Scores are [panel][row][16 heads]; a row more, since weights are read in words of kPack rows.
    std::int64_t panel_rows() const { return a_.rows + 1; }
    float* score_at(std::int32_t panel, std::int32_t row) const {
        return scores_ + (panel * panel_rows() + row) * kLanes;
    }

    void score() {
        for (std::int32_t panel = 0, group; panel < panels_; panel += group) {
            group = panels_at_once<V>(panels_ - panel);
            const float* queries = queries_ + static_cast<std::int64_t>(panel) * kLanes * (a_.dim / P::kPack);
            if (group == V::kScorePanels) {
                score_panels<V::kScoreRows, V::kScorePanels>(queries, panel);
            } else if (group == 2) {
                score_panels<V::kScoreRows, 2>(queries, panel);
            } else {
                score_panels<kMaxScoreRows<V>, 1>(queries, panel);
            }
        }
    }

    template <std::int32_t kRows, std::int32_t kPanels>
    void score_panels(const float* queries, std::int32_t panel) {
        const RowWords<P> words(a_.kv, a_.kv_bf16, a_.dim, a_.rows, row_buffer_);
        const std::int32_t count = a_.dim / P::kPack;
        for (std::int32_t begin = 0; begin < count; begin += kChunkWords) {
            const std::int32_t end = count - begin < kChunkWords ? count : begin + kChunkWords;
            const F scale = V::set1(end == count ? a_.scale : 1.0F);
            for (std::int32_t first = 0; first < a_.rows; first += kRows) {
                const char* row[kRows];
                words.template locate<kRows>(first, row);
                F sum[kRows][kPanels];
#pragma GCC unroll 8
                for (std::int32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
                    for (std::int32_t p = 0; p < kPanels; ++p) {
                        const bool more = begin > 0 && first + r < a_.rows;
                        sum[r][p] = more ? V::load(score_at(panel + p, first + r)) : V::zero();
                    }
                }
                multiply<P, kRows, kPanels>(queries, row, begin, end, sum);
#pragma GCC unroll 8
                for (std::int32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
                    for (std::int32_t p = 0; p < kPanels; ++p) {
                        if (first + r < a_.rows) {
                            V::store(score_at(panel + p, first + r), V::mul(sum[r][p], scale));
                        }
                    }
                }
            }
        }
    }

    // Scores to e^(score - max), and their sums with the sink.
    void soften() {
        for (std::int32_t panel = 0; panel < panels_; ++panel) {
            const F sink = V::load(a_.sink, panel * kLanes, a_.heads);
            F max = V::load(score_at(panel, 0));
            for (std::int32_t r = 1; r < a_.rows; ++r) {
                max = V::max(max, V::load(score_at(panel, r)));
            }
            if (a_.rounding == Rounding::kNone) {
                max = V::max(max, sink);
            }
            F total = V::zero();
            for (std::int32_t r = 0; r < a_.rows; ++r) {
                const F e = exp<V>(V::sub(V::load(score_at(panel, r)), max));
                V::store(score_at(panel, r), e);
                total = V::add(total, e);
            }
            V::store(totals_ + panel * kLanes, V::add(total, exp<V>(V::sub(sink, max))));
        }
    }

    void dump() const {
        for (std::int32_t head = 0; head < a_.heads; ++head) {
            for (std::int32_t r = 0; r < a_.rows; ++r) {
                const float e = score_at(head / kLanes, r)[head % kLanes];
                a_.probabilities[static_cast<std::int64_t>(head) * a_.rows + r] = e / totals_[head];
            }
        }
    }

    // Exponentials to the weights of the value product, in place: words ascend no faster than the rows they are made of.
    void weigh() {
        for (std::int32_t panel = 0; panel < panels_; ++panel) {
            const F total = V::load(totals_ + panel * kLanes);
            V::store(score_at(panel, a_.rows), V::zero());
            for (std::int32_t w = 0; w < pairs_; ++w) {
                F e[P::kPack];
                for (std::int32_t i = 0; i < P::kPack; ++i) {
                    e[i] = V::load(score_at(panel, w * P::kPack + i));
                    e[i] = a_.rounding == Rounding::kBf16 ? V::round_bf16(e[i]) : V::div(e[i], total);
                }
                V::store(score_at(panel, w), P::weight_words(e));
            }
        }
    }

    // Latents to words [block of kBlockDims dimensions][word][dimension of the block].
    static constexpr std::int32_t kBlockDims = V::kValueVectors * kLanes;
    void pack_values() {
        float* out = values_;
        for (std::int32_t begin = 0; begin < a_.dim; begin += kBlockDims) {
            const std::int32_t end = a_.dim - begin < kBlockDims ? a_.dim : begin + kBlockDims;
            for (std::int32_t w = 0; w < pairs_; ++w) {
                for (std::int32_t d = begin; d < end; d += kLanes, out += kLanes) {
                    V::store(out, P::value_words(a_, w * P::kPack, d));
                }
            }
        }
    }

    void mix() {
        for (std::int32_t begin = 0; begin < a_.dim; begin += kBlockDims) {
            const float* values = values_ + static_cast<std::int64_t>(begin) * pairs_;
            if (a_.dim - begin >= kBlockDims) {
                mix_block<V::kValueVectors>(values, begin);
            } else {
                mix_block<kBlockDims / 32>(values, begin);  // dim is a multiple of 32: half a block is left
            }
        }
    }

    template <std::int32_t kVectors>
    void mix_block(const float* values, std::int32_t dim) {
        for (std::int32_t begin = 0; begin < pairs_; begin += kChunkWords) {
            const std::int32_t end = pairs_ - begin < kChunkWords ? pairs_ : begin + kChunkWords;
            for (std::int32_t head = 0; head < a_.heads; head += V::kValueHeads) {
                mix_tile<kVectors>(values, dim, head, begin, end);
            }
        }
    }

    template <std::int32_t kVectors>
    void mix_tile(const float* values, std::int32_t dim, std::int32_t head, std::int32_t begin, std::int32_t end) {
        constexpr std::int32_t kHeads = V::kValueHeads;
        static_assert(kLanes % kHeads == 0, "the heads of a tile share a panel");
        const auto out = [&](std::int32_t h, std::int32_t v) {
            return a_.out + static_cast<std::int64_t>(head + h) * a_.dim + dim + v * kLanes;
        };
        F sum[kHeads][kVectors];
#pragma GCC unroll 4
        for (std::int32_t h = 0; h < kHeads; ++h) {
#pragma GCC unroll 4
            for (std::int32_t v = 0; v < kVectors; ++v) {
                sum[h][v] = begin > 0 && head + h < a_.heads ? V::load(out(h, v)) : V::zero();
            }
        }
        const float* weight = score_at(head / kLanes, begin) + head % kLanes;
        const float* value = values + static_cast<std::int64_t>(begin) * kVectors * kLanes;
        for (std::int32_t w = begin; w < end; ++w, weight += kLanes, value += kVectors * kLanes) {
            F vector[kVectors];
#pragma GCC unroll 4
            for (std::int32_t v = 0; v < kVectors; ++v) {
                vector[v] = V::load(value + v * kLanes);
            }
#pragma GCC unroll 4
            for (std::int32_t h = 0; h < kHeads; ++h) {
                const F word = V::broadcast(weight + h);
#pragma GCC unroll 4
                for (std::int32_t v = 0; v < kVectors; ++v) {
                    sum[h][v] = P::mul_add(sum[h][v], vector[v], word);
                }
            }
        }
        const bool divides = end == pairs_ && a_.rounding == Rounding::kBf16;
#pragma GCC unroll 4
        for (std::int32_t h = 0; h < kHeads; ++h) {
            if (head + h >= a_.heads) {
                break;
            }
            const F total = V::set1(totals_[head + h]);
#pragma GCC unroll 4
            for (std::int32_t v = 0; v < kVectors; ++v) {
                V::store(out(h, v), divides ? V::round_bf16(V::div(sum[h][v], total)) : sum[h][v]);
            }
        }
    }

    const Attend& a_;
    const std::int32_t panels_;
    const std::int32_t pairs_;  // rows in words of kPack
    float* queries_;
    float* values_;
    float* scores_;
    float* totals_;
    float* row_buffer_;
};

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

template <class P>
void attend_of(const Attend& a) {
    Attention<P>(a).run();
}

}  // namespace
}  // namespace megamoe::cpu
