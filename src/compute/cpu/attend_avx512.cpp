#include "compute/cpu/attend_simd.h"
#include "compute/cpu/index_simd.h"
#include "compute/cpu/vec_avx512.h"

namespace megamoe::cpu {

const AttendKernels kAttendAvx512{
    .needs = Isa::kAvx512,
    .dim_multiple = 32,
    .attend = attend_of<FloatProduct<Avx512>>,
    .index_scores = index_scores_of<FloatProduct<Avx512>>,
};

}  // namespace megamoe::cpu
