// What one instruction set provides to row_ops.h: the same functions without the choice. Internal to this folder.
// Included by files compiled with wide flags, hence no templates and nothing inline.
#pragma once

#include "compute/cpu/row_ops.h"

namespace megamoe::cpu {

struct RowKernels {
    Isa needs;
    void (*rms_norm)(const float* x, const float* weight, std::int32_t n, float eps, Rounding rounding, float* out);
    void (*head_norm_bf16)(float* x, std::int32_t n, float eps);
    void (*quantise_fp8)(float* x, std::int32_t n, std::int32_t group);
    void (*swiglu)(const float* gate, const float* up, std::int32_t n, float limit, float weight, Rounding rounding,
                   float* out);
    void (*hc_collapse)(const float* streams, const float* pre, std::int32_t num_streams, std::int32_t hidden,
                        Rounding rounding, float* out);
    void (*hc_expand)(const float* o, const float* post, const float* comb, std::int32_t num_streams,
                      std::int32_t hidden, Rounding rounding, float* streams);
};

// The arguments of index_scores().
struct IndexScores {
    const float* q;
    const void* keys;
    bool keys_bf16;
    const float* weight;
    std::int32_t heads;
    std::int32_t dim;
    std::int32_t rows;
    Rounding rounding;
    float* score;
    float* scratch;  // (heads rounded up to 16 + kIndexScratchRows) * dim floats
};
inline constexpr std::int32_t kIndexScratchRows = 8;

struct AttendKernels {
    Isa needs;
    std::int32_t dim_multiple;  // widths that these kernels take
    void (*attend)(const Attend& a);
    void (*index_scores)(const IndexScores& s);
};

// Streams of the hyper-connection that hc_expand() can hold at once.
inline constexpr std::int32_t kMaxStreams = 8;

extern const RowKernels kRowScalar;
extern const RowKernels kRowAvx2;
extern const RowKernels kRowAvx512;
extern const AttendKernels kAttendScalar;
extern const AttendKernels kAttendAvx2;
extern const AttendKernels kAttendAvx512;
extern const AttendKernels kAttendAvx512Bf16;

}  // namespace megamoe::cpu
