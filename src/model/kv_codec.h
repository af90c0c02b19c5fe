// The stored form of a latent vector: float32 in profile hf, bfloat16 in ds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "compute/ops/formats.h"
#include "config/engine_config.h"

namespace megamoe::model {

inline std::size_t latent_bytes(std::int32_t dim, Profile profile) {
    return static_cast<std::size_t>(dim) * (profile == Profile::kDs ? 2 : 4);
}

// `x` holds bfloat16 values in profile ds, so storing is exact.
inline void store_latent(std::span<const float> x, Profile profile, std::byte* to) {
    if (profile == Profile::kHf) {
        std::memcpy(to, x.data(), x.size_bytes());
        return;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::uint16_t code = ops::to_bf16(x[i]);
        std::memcpy(to + 2 * i, &code, 2);
    }
}

}  // namespace megamoe::model
