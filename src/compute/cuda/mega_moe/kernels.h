// The table of instantiations: one for each width of a token block.
#pragma once

#include <cstdint>

#include "compute/cuda/mega_moe/params.h"

namespace megamoe::cuda {

struct MegaMoeKernel {
    void (*entry)(MegaMoeParams);
    std::int32_t threads;
    std::int32_t shared_bytes;
    std::int32_t stages;
};

template <std::int32_t kTokens>
MegaMoeKernel mega_moe_kernel(ExpertFormat format);

template <>
MegaMoeKernel mega_moe_kernel<8>(ExpertFormat format);
template <>
MegaMoeKernel mega_moe_kernel<16>(ExpertFormat format);
template <>
MegaMoeKernel mega_moe_kernel<24>(ExpertFormat format);
template <>
MegaMoeKernel mega_moe_kernel<32>(ExpertFormat format);
template <>
MegaMoeKernel mega_moe_kernel<48>(ExpertFormat format);
template <>
MegaMoeKernel mega_moe_kernel<64>(ExpertFormat format);
template <>
MegaMoeKernel mega_moe_kernel<80>(ExpertFormat format);
template <>
MegaMoeKernel mega_moe_kernel<96>(ExpertFormat format);
template <>
MegaMoeKernel mega_moe_kernel<112>(ExpertFormat format);

}  // namespace megamoe::cuda
