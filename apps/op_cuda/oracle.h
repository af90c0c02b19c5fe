// The MoE layer in double precision on the host, straight from the checkpoint's codes. It shares no code with the
// kernels.
#pragma once

#include <cstdint>
#include <vector>

namespace megamoe::op_cuda {

struct HostExpert {
    // MXFP4 codes [n][k / 2] and ue8m0 scales [n][k / 32], or E4M3 codes [n][k] and f32 scales per 128 x 128.
    std::vector<std::uint8_t> codes[4];  // [1] gate, [2] down, [3] up
    std::vector<std::uint8_t> scales[4];
};

struct OracleShape {
    bool fp8 = false;
    std::int32_t hidden = 0;
    std::int32_t inter = 0;
    float clamp = 0;
};

// In    x [hidden] E4M3 codes, x_scale [hidden / 128]; weight: of the routing
// Out   the expert's result for the row, rounded to BF16 as the released model rounds
std::vector<float> run_expert(const OracleShape& shape, const HostExpert& expert, const std::uint8_t* x,
                              const float* x_scale, float weight);

}  // namespace megamoe::op_cuda
