#include "compute/cpu/row_ops_simd.h"
#include "compute/cpu/vec_avx512.h"

namespace megamoe::cpu {

constinit const RowKernels kRowAvx512 = row_kernels_of<Avx512>(Isa::kAvx512);

}  // namespace megamoe::cpu
