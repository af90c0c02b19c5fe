// One width of the kernel, both weight formats: MM_INSTANTIATE_MEGA_MOE(tokens, warpgroups).
#pragma once

#include "compute/cuda/mega_moe/kernels.h"
#include "compute/cuda/mega_moe/sm90_mega_moe.cuh"

#define MM_INSTANTIATE_MEGA_MOE(tokens, warpgroups)                                                    \
    namespace megamoe::cuda {                                                                          \
    template <>                                                                                        \
    MegaMoeKernel mega_moe_kernel<tokens>(ExpertFormat format) {                                       \
        using Packed = Traits<tokens, warpgroups, ExpertFormat::kMxfp4>;                               \
        using Plain = Traits<tokens, warpgroups, ExpertFormat::kFp8>;                                  \
        if (format == ExpertFormat::kMxfp4) {                                                          \
            return {&mega_moe<Packed>, Packed::kThreads, Smem<Packed>::kBytes, Smem<Packed>::kStages}; \
        }                                                                                              \
        return {&mega_moe<Plain>, Plain::kThreads, Smem<Plain>::kBytes, Smem<Plain>::kStages};         \
    }                                                                                                  \
    }
