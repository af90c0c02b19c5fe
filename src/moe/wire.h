// How rows travel between ranks: bfloat16 in profile ds (exact there), float32 in hf; and the area where results come
// back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "moe/operator.h"

namespace megamoe::moe {

std::int64_t wire_row_bytes(const ExpertMath& math);
// `count` values of a row, or of a part of one.
void write_wire(const ExpertMath& math, const float* row, std::int32_t count, std::byte* to);
void read_wire(const ExpertMath& math, const std::byte* from, float* row);

inline std::int64_t align64(std::int64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

// [max_rows, K] wire rows: result of the token's k-th choice, written by the rank that owns the expert.
inline std::int64_t combine_bytes(const OperatorConfig& c) {
    return align64(std::int64_t{c.max_rows} * c.top_k * wire_row_bytes(c.math));
}
inline std::byte* combine_row(const OperatorConfig& c, std::byte* area, std::int64_t token, std::int32_t k) {
    return area + (token * c.top_k + k) * wire_row_bytes(c.math);
}

// out = the rows' returned results, summed by ascending expert id, plus shared [rows, H].
void combine(const OperatorConfig& c, Workers& workers, const Input& input, std::byte* area, const float* shared,
             float* out);

// A copy of x as the experts read it: FP8-quantised in profile ds.
void quantise_rows(const ExpertMath& math, Workers& workers, const float* x, std::int32_t rows, float* out);

}  // namespace megamoe::moe
