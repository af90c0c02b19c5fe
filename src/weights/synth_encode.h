// Floats into the released storage formats, a band of rows at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace megamoe::weights {

// Appends the codes of `rows` (of `cols` values each, row-major) to `codes` and their scales to `scales`. A scale is
// the smallest power of two that brings the largest value of its block into range, as released checkpoints choose it.
// Spec  model spec, 2.5
//
// FP8: at most 128 rows, one row of blocks.
void encode_fp8(std::span<const float> rows, std::int64_t cols, std::vector<std::byte>& codes,
                std::vector<std::byte>& scales);
// FP4: `cols` is a multiple of 32.
void encode_fp4(std::span<const float> rows, std::int64_t cols, std::vector<std::byte>& codes,
                std::vector<std::byte>& scales);

void encode_bf16(std::span<const float> values, std::vector<std::byte>& codes);

}  // namespace megamoe::weights
