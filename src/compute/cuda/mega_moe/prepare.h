// Expert weights of a checkpoint -> panels of the fused operator, on the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "compute/cuda/mega_moe/panel.h"

namespace megamoe::cuda {

// The routed experts of one layer on this rank, as the checkpoint stores them, experts one after another, on the
// device. MXFP4: codes u8 [n][k / 2], scales ue8m0 [n][k / 32]. FP8: codes e4m3 [n][k], scales f32 [ceil(n /
// 128)][ceil(k / 128)].
struct RawExperts {
    ExpertFormat format;
    std::int32_t num_experts;
    std::int32_t hidden;           // multiple of 128
    std::int32_t inter;            // multiple of 128
    const std::uint8_t* codes[4];  // [1], [2], [3]: w1 gate [I, H], w2 down [H, I], w3 up [I, H]
    const void* scales[4];
};

struct PanelCounts {
    std::int32_t rows;     // panels down an expert's matrix: I / 128 in the first layer, ceil(H / 256) in the second
    std::int32_t columns;  // panels along it
};

constexpr PanelCounts panel_counts(std::int32_t layer, std::int32_t hidden, std::int32_t inter) {
    return layer == 1 ? PanelCounts{inter / kPanelChannels, hidden / kPanelCols}
                      : PanelCounts{(hidden + kPanelRows - 1) / kPanelRows, inter / kPanelCols};
}

constexpr std::int64_t panel_bytes(ExpertFormat format, std::int32_t layer, std::int32_t hidden, std::int32_t inter,
                                   std::int32_t num_experts) {
    const PanelCounts n = panel_counts(layer, hidden, inter);
    return std::int64_t{num_experts} * n.rows * n.columns * panel_layout(format).bytes;
}

// In    layer   1 or 2
// Out   panels  panel_bytes(...)
//       report  device memory, added to; zero it first
// Same  exact unless report->deep_groups > 0
cudaError_t launch_prepare_panels(const RawExperts& raw, std::int32_t layer, std::byte* panels, FoldReport* report,
                                  cudaStream_t stream);

}  // namespace megamoe::cuda
