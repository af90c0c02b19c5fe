// Profile ds over bfloat16 latents: pairs of values with vdpbf16ps. Everything else is float32.
#include "compute/cpu/attend_simd.h"
#include "compute/cpu/index_simd.h"
#include "compute/cpu/vec_avx512.h"

namespace megamoe::cpu {
namespace {

// A word is two bfloat16 values: two dimensions of a query or latent in the scores, two latents in the value product.
struct PairProduct {
    using V = Avx512;
    using F = V::F;
    static constexpr std::int32_t kPack = 2;

    static F mul_add(F sum, F words, F word) {
        return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(words), reinterpret_cast<__m512bh>(word));
    }

    static F query_words(const float* q) {
        return reinterpret_cast<F>(_mm512_cvtne2ps_pbh(V::load(q + kLanes), V::load(q)));
    }

    // The latent after the last is zero, and so is its weight.
    static F value_words(const Attend& a, std::int32_t row, std::int32_t d) {
        const auto* even = static_cast<const std::uint16_t*>(a.kv) + static_cast<std::int64_t>(row) * a.dim + d;
        return both(V::load_bf16(even), row + 1 < a.rows ? V::load_bf16(even + a.dim) : V::zero());
    }

    static F weight_words(const F* e) { return both(e[0], e[1]); }

  private:
    // bfloat16 values in float32 lanes to pairs.
    static F both(F even, F odd) {
        return _mm512_castsi512_ps(
            _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even), 16), _mm512_castps_si512(odd)));
    }
};

void attend(const Attend& a) {
    if (a.kv_bf16 && a.rounding == Rounding::kBf16) {
        attend_of<PairProduct>(a);
    } else {
        attend_of<FloatProduct<Avx512>>(a);
    }
}

void index_scores(const IndexScores& s) {
    if (s.keys_bf16 && s.rounding == Rounding::kBf16) {
        index_scores_of<PairProduct>(s);
    } else {
        index_scores_of<FloatProduct<Avx512>>(s);
    }
}

}  // namespace

const AttendKernels kAttendAvx512Bf16{
    .needs = Isa::kAvx512Bf16,
    .dim_multiple = 32,
    .attend = attend,
    .index_scores = index_scores,
};

}  // namespace megamoe::cpu
