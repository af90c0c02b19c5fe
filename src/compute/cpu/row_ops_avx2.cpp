#include "compute/cpu/row_ops_simd.h"
#include "compute/cpu/vec_avx2.h"

namespace megamoe::cpu {

constinit const RowKernels kRowAvx2 = row_kernels_of<Avx2>(Isa::kAvx2);

}  // namespace megamoe::cpu
