#include "compute/cuda/mega_moe/kernels.h"
#include "compute/cuda/mega_moe/sm90_mega_moe.cuh"

namespace megamoe::cuda {

template <>
MegaMoeKernel mega_moe_kernel<128>(ExpertFormat format) {
    if (format != ExpertFormat::kMxfp4) {
        return {};
    }
    return {&mega_moe<WideTraits>, WideTraits::kThreads, Smem<WideTraits>::kBytes, Smem<WideTraits>::kStages};
}

}  // namespace megamoe::cuda
