#include "compute/cpu/row_ops.h"

#include <array>
#include <vector>

#include "base/check.h"
#include "compute/cpu/row_kernels.h"

namespace megamoe::cpu {
namespace {

// Best first. A new instruction set is one row here and one file; the test walks the names in isa.h.
constexpr std::array kRowKernels{&kRowAvx512, &kRowAvx2, &kRowScalar};
constexpr std::array kAttendKernels{&kAttendAvx512Bf16, &kAttendAvx512, &kAttendAvx2, &kAttendScalar};

const RowKernels& row_kernels(Isa isa) {
    for (const RowKernels* k : kRowKernels) {
        if (k->needs <= isa) {
            return *k;
        }
    }
    return kRowScalar;
}

const AttendKernels& attend_kernels(Isa isa, std::int32_t dim) {
    for (const AttendKernels* k : kAttendKernels) {
        if (k->needs <= isa && dim % k->dim_multiple == 0) {
            return *k;
        }
    }
    return kAttendScalar;
}

std::int64_t round_up(std::int64_t n, std::int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

}  // namespace

void rms_norm(Isa isa, const float* x, const float* weight, std::int32_t n, float eps, Rounding rounding, float* out) {
    row_kernels(isa).rms_norm(x, weight, n, eps, rounding, out);
}

void head_norm(Isa isa, float* x, std::int32_t n, float eps, Rounding rounding) {
    if (rounding == Rounding::kNone) {
        row_kernels(isa).rms_norm(x, nullptr, n, eps, rounding, x);
    } else {
        row_kernels(isa).head_norm_bf16(x, n, eps);
    }
}

void quantise_fp8(Isa isa, float* x, std::int32_t n, std::int32_t group) {
    row_kernels(isa).quantise_fp8(x, n, group);
}

void swiglu(Isa isa, const float* gate, const float* up, std::int32_t n, float limit, float weight, Rounding rounding,
            float* out) {
    row_kernels(isa).swiglu(gate, up, n, limit, weight, rounding, out);
}

void hc_collapse(Isa isa, const float* streams, const float* pre, std::int32_t num_streams, std::int32_t hidden,
                 Rounding rounding, float* out) {
    row_kernels(isa).hc_collapse(streams, pre, num_streams, hidden, rounding, out);
}

void hc_expand(Isa isa, const float* o, const float* post, const float* comb, std::int32_t num_streams,
               std::int32_t hidden, Rounding rounding, float* streams) {
    MM_CHECK(num_streams <= kMaxStreams, "streams", num_streams);
    row_kernels(isa).hc_expand(o, post, comb, num_streams, hidden, rounding, streams);
}

// Queries, values, scores, totals and a tile of widened rows; see Attention in attend_simd.h.
std::int64_t attend_scratch(std::int32_t heads, std::int32_t dim, std::int32_t rows) {
    const std::int64_t lanes = round_up(heads, 16);
    const std::int64_t width = round_up(dim, 16);
    return lanes * width + (rows + 1) * width + lanes * (rows + 2) + kIndexScratchRows * width + 16;
}

void attend(Isa isa, const Attend& a) {
    MM_CHECK(a.rows >= 1, "rows", a.rows);
    attend_kernels(isa, a.dim).attend(a);
}

void index_scores(Isa isa, const float* q, const void* keys, bool keys_bf16, const float* weight, std::int32_t heads,
                  std::int32_t dim, std::int32_t rows, Rounding rounding, float* score) {
    thread_local std::vector<float> scratch;  // grows to the largest call, then stays
    const auto floats = static_cast<std::size_t>((round_up(heads, 16) + kIndexScratchRows) * dim);
    if (scratch.size() < floats) {
        scratch.resize(floats);
    }
    attend_kernels(isa, dim).index_scores({.q = q,
                                           .keys = keys,
                                           .keys_bf16 = keys_bf16,
                                           .weight = weight,
                                           .heads = heads,
                                           .dim = dim,
                                           .rows = rows,
                                           .rounding = rounding,
                                           .score = score,
                                           .scratch = scratch.data()});
}

}  // namespace megamoe::cpu
