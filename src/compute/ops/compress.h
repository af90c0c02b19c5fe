// Pooling of one compressed entry from the raw rows of its window, and the choice of entries by score.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace megamoe::ops {

// One token's contribution as the compressor state keeps it: value and gate, gate without the position bias.
struct RawRow {
    const float* value = nullptr;  // [c*d]
    const float* gate = nullptr;   // [c*d]
    const float* bias = nullptr;   // ape row of this token's position mod r, [c*d]
};

// Channel-wise softmax over the rows, then the weighted sum of the values.
//
// In    window    r rows, oldest first. d = out.size(). With overlap (ratio 4) channels d..2d-1 of these are used.
//       previous  the r rows before them, of which channels 0..d-1 are used; empty for the first window or no overlap
// Out   out [d]
// Same  depends on the rows alone
// Spec  model spec, 3.6
void pool_window(std::span<const RawRow> previous, std::span<const RawRow> window, bool overlap, std::span<float> out);

// Indices of the `count` largest scores, ascending by index; equal scores: the lower index is taken first.
// Spec  model spec, 3.7
void select_top(std::span<const float> score, std::int32_t count, std::vector<std::int32_t>& out);

}  // namespace megamoe::ops
