#include "compute/ops/compress.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace megamoe::ops {
namespace {

struct Piece {
    const float* value;
    const float* gate;
    const float* bias;
};

}  // namespace

void pool_window(std::span<const RawRow> previous, std::span<const RawRow> window, bool overlap, std::span<float> out) {
    const std::size_t d = out.size();
    const std::size_t offset = overlap ? d : 0;
    thread_local std::vector<Piece> pieces;
    thread_local std::vector<float> weight;
    pieces.clear();
    for (const RawRow& row : previous) {
        pieces.push_back({row.value, row.gate, row.bias});
    }
    for (const RawRow& row : window) {
        pieces.push_back({row.value + offset, row.gate + offset, row.bias + offset});
    }
    weight.resize(pieces.size());
    for (std::size_t ch = 0; ch < d; ++ch) {
        float top = pieces[0].gate[ch] + pieces[0].bias[ch];
        for (const Piece& p : pieces) {
            top = std::max(top, p.gate[ch] + p.bias[ch]);
        }
        float sum = 0;
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            weight[i] = std::exp(pieces[i].gate[ch] + pieces[i].bias[ch] - top);
            sum += weight[i];
        }
        float mixed = 0;
        for (std::size_t i = 0; i < pieces.size(); ++i) {
            mixed += weight[i] / sum * pieces[i].value[ch];
        }
        out[ch] = mixed;
    }
}

void select_top(std::span<const float> score, std::int32_t count, std::vector<std::int32_t>& out) {
    MM_CHECK(count >= 0, "count", count);
    out.resize(score.size());
    std::iota(out.begin(), out.end(), 0);
    const auto keep = std::min(out.size(), static_cast<std::size_t>(count));
    // A NaN score sorts last: an inconsistent comparison would let nth_element leave the range.
    const auto key = [&](std::int32_t i) {
        const float s = score[static_cast<std::size_t>(i)];
        return std::isnan(s) ? -std::numeric_limits<float>::infinity() : s;
    };
    const auto before = [&](std::int32_t a, std::int32_t b) { return key(a) > key(b) || (key(a) == key(b) && a < b); };
    std::nth_element(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(keep), out.end(), before);
    out.resize(keep);
    std::sort(out.begin(), out.end());
}

}  // namespace megamoe::ops
