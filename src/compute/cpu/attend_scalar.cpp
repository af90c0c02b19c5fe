// The plain form of attention and of the indexer's scores: the oracle of the vector forms.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compute/cpu/row_kernels.h"
#include "compute/ops/formats.h"

namespace megamoe::cpu {
namespace {

// Rows of float32, or of bfloat16 codes, read as float32.
class Rows {
  public:
    Rows(const void* data, bool bf16, std::int32_t dim)
        : data_(static_cast<const char*>(data)), bf16_(bf16), dim_(dim) {}

    float operator()(std::int32_t row, std::int32_t d) const {
        const std::int64_t index = static_cast<std::int64_t>(row) * dim_ + d;
        if (bf16_) {
            std::uint16_t code;
            std::memcpy(&code, data_ + index * 2, sizeof code);
            return ops::from_bf16(code);
        }
        float value;
        std::memcpy(&value, data_ + index * 4, sizeof value);
        return value;
    }

  private:
    const char* data_;
    bool bf16_;
    std::int32_t dim_;
};

float dot(const float* q, const Rows& kv, std::int32_t row, std::int32_t dim) {
    float sum = 0;
    for (std::int32_t d = 0; d < dim; ++d) {
        sum = std::fma(q[d], kv(row, d), sum);
    }
    return sum;
}

// Scores of one head to e^(score - max), in place; returns their sum, the sink included.
float soften(const Attend& a, float sink, float* score) {
    float max = *std::max_element(score, score + a.rows);
    if (a.rounding == Rounding::kNone) {
        max = std::max(max, sink);
    }
    float sum = 0;
    for (std::int32_t r = 0; r < a.rows; ++r) {
        score[r] = std::exp(score[r] - max);
        sum += score[r];
    }
    return sum + std::exp(sink - max);
}

void attend_head(const Attend& a, const Rows& kv, std::int32_t head) {
    const float* q = a.q + static_cast<std::int64_t>(head) * a.dim;
    float* out = a.out + static_cast<std::int64_t>(head) * a.dim;
    float* e = a.scratch;
    for (std::int32_t r = 0; r < a.rows; ++r) {
        e[r] = dot(q, kv, r, a.dim) * a.scale;
    }
    const float total = soften(a, a.sink[head], e);
    const bool bf16 = a.rounding == Rounding::kBf16;
    for (std::int32_t r = 0; r < a.rows; ++r) {
        const float p = e[r] / total;
        if (a.probabilities != nullptr) {
            a.probabilities[static_cast<std::int64_t>(head) * a.rows + r] = p;
        }
        e[r] = bf16 ? ops::round_bf16(e[r]) : p;
    }
    for (std::int32_t d = 0; d < a.dim; ++d) {
        float sum = 0;
        for (std::int32_t r = 0; r < a.rows; ++r) {
            sum = std::fma(e[r], kv(r, d), sum);
        }
        out[d] = bf16 ? ops::round_bf16(sum / total) : sum;
    }
}

void attend(const Attend& a) {
    const Rows kv(a.kv, a.kv_bf16, a.dim);
    for (std::int32_t head = 0; head < a.heads; ++head) {
        attend_head(a, kv, head);
    }
}

void index_scores(const IndexScores& s) {
    const Rows keys(s.keys, s.keys_bf16, s.dim);
    for (std::int32_t row = 0; row < s.rows; ++row) {
        float sum = 0;
        for (std::int32_t head = 0; head < s.heads; ++head) {
            const float product = dot(s.q + static_cast<std::int64_t>(head) * s.dim, keys, row, s.dim);
            if (s.rounding == Rounding::kBf16) {
                sum += ops::round_bf16(std::max(ops::round_bf16(product), 0.0F) * s.weight[head]);
            } else {
                sum = std::fma(s.weight[head], std::max(product, 0.0F), sum);
            }
        }
        s.score[row] = s.rounding == Rounding::kBf16 ? ops::round_bf16(sum) : sum;
    }
}

}  // namespace

const AttendKernels kAttendScalar{
    .needs = Isa::kScalar, .dim_multiple = 1, .attend = attend, .index_scores = index_scores};

}  // namespace megamoe::cpu
