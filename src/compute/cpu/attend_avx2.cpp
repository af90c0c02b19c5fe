#include "compute/cpu/attend_simd.h"
#include "compute/cpu/index_simd.h"
#include "compute/cpu/vec_avx2.h"

namespace megamoe::cpu {

const AttendKernels kAttendAvx2{
    .needs = Isa::kAvx2,
    .dim_multiple = 32,
    .attend = attend_of<FloatProduct<Avx2>>,
    .index_scores = index_scores_of<FloatProduct<Avx2>>,
};

}  // namespace megamoe::cpu
