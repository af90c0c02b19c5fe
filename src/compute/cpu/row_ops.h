// The element-wise and row-wise operators of the forward that are worth vectorising. One row or token a call, no
// threads. All values are float32; with Rounding::kBf16 each named result is rounded to bfloat16 (profile ds).
// Same  bit-identical for any neighbours, on one ISA. Across ISAs: norms, quantisation and hyper-connection
//       bit-identical; swiglu and attention round at the same places, but exp differs by 2 ulp and sums are reordered.
#pragma once

#include <cstdint>

#include "compute/cpu/isa.h"

namespace megamoe::cpu {

enum class Rounding : std::uint8_t { kNone, kBf16 };

// out = round(x / sqrt(mean(x^2) + eps) * weight). `weight` may be null (= 1). out may be x.
// The sum of squares runs in 16 interleaved float32 lanes, then a fixed tree.
// Spec  model spec, 3.1
void rms_norm(Isa isa, const float* x, const float* weight, std::int32_t n, float eps, Rounding rounding, float* out);

// The norm of one query head in profile ds: square, mean, add eps, rsqrt and multiply each rounded to bfloat16 (the sum
// of the mean runs in float32 and rounds once). With kNone: rms_norm without weight.
// Spec  model spec, 3.1 and 11 no. 13
void head_norm(Isa isa, float* x, std::int32_t n, float eps, Rounding rounding);

// x = the value FP8 activation quantisation gives, by groups of `group` columns (see ops::simulate_fp8; same bits).
void quantise_fp8(Isa isa, float* x, std::int32_t n, std::int32_t group);

// out = silu(min(gate, limit)) * clamp(up, -limit, limit) * weight, then rounded. out may be gate.
// Spec  model spec, 3.9
void swiglu(Isa isa, const float* gate, const float* up, std::int32_t n, float limit, float weight, Rounding rounding,
            float* out);

// out[d] = round(sum_j pre[j] * streams[j, d]), j ascending. streams [num_streams, hidden].
// Spec  model spec, 3.3 step 9
void hc_collapse(Isa isa, const float* streams, const float* pre, std::int32_t num_streams, std::int32_t hidden,
                 Rounding rounding, float* out);

// streams'[k] = round(post[k] * o + sum_j comb[j, k] * streams[j]), j ascending; in place. comb [num_streams,
// num_streams]; at most 8 streams.
// Spec  model spec, 3.3
void hc_expand(Isa isa, const float* o, const float* post, const float* comb, std::int32_t num_streams,
               std::int32_t hidden, Rounding rounding, float* streams);

// Attention of one query token with one latent a row as key and value of all heads, and a sink a head that takes weight
// only.
struct Attend {
    const float* q = nullptr;  // [heads, dim]
    const void* kv = nullptr;  // [rows, dim] float32, or bfloat16 codes when kv_bf16
    bool kv_bf16 = false;
    std::int32_t heads = 0;
    std::int32_t dim = 0;
    std::int32_t rows = 0;        // >= 1
    float scale = 0;              // dim^-0.5
    const float* sink = nullptr;  // [heads]
    // kBf16: the maximum is taken without the sink, exponentials are rounded before the value product (their sum is of
    // unrounded ones), the output is rounded. kNone: the maximum is taken with the sink.
    Rounding rounding = Rounding::kNone;
    float* out = nullptr;            // [heads, dim]
    float* probabilities = nullptr;  // [heads, rows] for dumps, or null
    float* scratch = nullptr;        // attend_scratch(heads, dim, rows) floats
};
// Cost  dim a multiple of 32: both products run at matrix product speed from 64 heads on; other widths take the scalar
//       form
std::int64_t attend_scratch(std::int32_t heads, std::int32_t dim, std::int32_t rows);
// Spec  model spec, 3.5 steps 6 to 8
void attend(Isa isa, const Attend& a);

// Indexer scores of one query against `rows` compressed keys.
//   kNone: score = sum_m weight[m] * relu(q_m . k_w), weight already holds both constants, float32 sums
//   kBf16: d = relu(bf16(q_m . k_w)); score = bf16(sum_m bf16(d * weight[m])), float32 sums
// In    q [heads, dim] f32; keys [rows, dim] f32 or bf16 codes; weight [heads]
// Out   score [rows]
// Spec  model spec, 3.7
void index_scores(Isa isa, const float* q, const void* keys, bool keys_bf16, const float* weight, std::int32_t heads,
                  std::int32_t dim, std::int32_t rows, Rounding rounding, float* score);

}  // namespace megamoe::cpu
