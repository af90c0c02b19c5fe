// Attention. Scores have heads in their lanes (score_simd.h), so the softmax needs no sum across lanes. Values have
// dimensions in their lanes: latents are copied once to blocks of dimensions that stay in L1 while every head reads
// them.
#pragma once

#include "compute/cpu/score_simd.h"

namespace megamoe::cpu {
namespace {

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

    // Exponentials to the weights of the value product, in place: words ascend no faster than the rows they are made
    // of.
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

template <class P>
void attend_of(const Attend& a) {
    Attention<P>(a).run();
}

}  // namespace
}  // namespace megamoe::cpu
