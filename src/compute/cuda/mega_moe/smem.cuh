// Shared memory of a thread block.
#pragma once

#include <cstdint>

#include "compute/cuda/mega_moe/panel.h"
#include "compute/cuda/mega_moe/params.h"
#include "compute/mega/schedule.h"

namespace megamoe::cuda {

inline constexpr std::int32_t kTaskSlots = 4;
inline constexpr std::int32_t kMaxStages = 16;
inline constexpr std::int32_t kSmemBudget = 232448;  // of a block on sm_90

// What an instantiation is made of: tokens of a block (the N of the matrix instruction) and who computes.
template <std::int32_t kTokens_, std::int32_t kWarpgroups_, ExpertFormat kFormat_>
struct Traits {
    static constexpr std::int32_t kTokens = kTokens_;
    static constexpr std::int32_t kWarpgroups = kWarpgroups_;
    static constexpr ExpertFormat kFormat = kFormat_;
    static constexpr std::int32_t kHalves = kTiles / kWarpgroups;  // tiles a warpgroup owns
    static constexpr std::int32_t kMathThreads = kWarpgroups * 128;
    static constexpr std::int32_t kThreads = kMathThreads + 128;
    // Roles trade registers inside what the block was given at its start; asking for more would wait for ever.
    static constexpr std::int32_t kEntryRegisters = 65536 / kThreads / 8 * 8;
    static constexpr std::int32_t kMathRegisters = kWarpgroups == 4 ? 104 : 216;
    static constexpr std::int32_t kFrontRegisters = kWarpgroups == 4 ? 64 : 72;
    static_assert(kMathRegisters * kMathThreads + kFrontRegisters * 128 <= kEntryRegisters * kThreads);
    static constexpr PanelLayout kPanel = panel_layout(kFormat);

    // Rows of staged results, padded so that the columns of an 8x8 tile fall on different banks.
    static constexpr std::int32_t kActStride = kPanelChannels * 2 + 16;
    static constexpr std::int32_t kOutStride = kHalves * kTileRows * 2 + 16;
    static constexpr std::int32_t kStaging =
        kTokens * (kActStride > kWarpgroups * kOutStride ? kActStride : kWarpgroups * kOutStride);
    static constexpr std::int32_t kWeightAlign =
        kFormat == ExpertFormat::kFp8 ? 1024 : 128;  // FP8: read as a swizzled operand
    static constexpr std::int32_t kWeightBytes = (kPanel.bytes + kWeightAlign - 1) / kWeightAlign * kWeightAlign;
    static constexpr std::int32_t kTokenBytes = kTokens * 128;
    static constexpr std::int32_t kScaleBytes = (kTokens * 4 + 127) / 128 * 128;
    static constexpr std::int32_t kStageBytes = kWeightBytes + kTokenBytes + kScaleBytes;
};

struct Control {
    uint2 magnitude[16];  // E4M3 codes of {0, .5, 1, 1.5, 2, 3, 4, 6} * 2^(i - 8); first, so 256-byte aligned
    std::uint64_t full[kMaxStages];   // weights and tokens of a stage have come
    std::uint64_t empty[kMaxStages];  // all math warps are done with it
    std::uint64_t task_full[kTaskSlots];
    std::uint64_t task_empty[kTaskSlots];
    mega::Task task[kTaskSlots];  // layer 0: the stream has ended
    std::uint64_t start_ns;
    mega::Epoch epoch;
    std::int32_t num_rows;
    std::int32_t total_rows;  // that this rank's experts receive
    std::uint32_t abort;
    std::uint32_t last;
    std::uint32_t row_meta[2][128];  // of the task's rows: routing weight or source; tasks alternate
    std::int32_t rows_from[mega::kMaxRanks];
    std::int32_t row_begin[kMaxLocalExperts + 1];
    mega::ExpertBegin begin[kMaxLocalExperts + 1];
    std::uint32_t count[kMaxCountCells];  // [local expert][source]: rows of the sources before it
};

template <class T>
struct Smem {
    static constexpr std::int32_t kControl = (static_cast<std::int32_t>(sizeof(Control)) + 1023) / 1024 * 1024;
    static constexpr std::int32_t kFit = (kSmemBudget - kControl - T::kStaging) / T::kStageBytes;
    static constexpr std::int32_t kStages = kFit < kMaxStages ? kFit : kMaxStages;
    static_assert(kStages >= 3, "a pipeline needs stages");
    static constexpr std::int32_t kTokensAt = kControl;  // 1024-byte aligned, as the swizzle wants
    static constexpr std::int32_t kWeightsAt = kTokensAt + kStages * T::kTokenBytes;
    static constexpr std::int32_t kScalesAt = kWeightsAt + kStages * T::kWeightBytes;
    static constexpr std::int32_t kStagingAt = kScalesAt + kStages * T::kScaleBytes;
    static constexpr std::int32_t kBytes = kStagingAt + T::kStaging;

    std::byte* base;

    __device__ Control& control() const { return *reinterpret_cast<Control*>(base); }
    __device__ std::byte* tokens(std::int32_t stage) const { return base + kTokensAt + stage * T::kTokenBytes; }
    __device__ std::byte* weights(std::int32_t stage) const { return base + kWeightsAt + stage * T::kWeightBytes; }
    __device__ std::byte* scales(std::int32_t stage) const { return base + kScalesAt + stage * T::kScaleBytes; }
    __device__ std::byte* staging() const { return base + kStagingAt; }
};

// Position in the ring of stages; all roles walk the same sequence.
struct StageCursor {
    std::int32_t stage = 0;
    std::uint32_t phase = 0;

    template <std::int32_t kStages>
    __device__ void next() {
        if (++stage == kStages) {
            stage = 0;
            phase ^= 1U;
        }
    }
};

}  // namespace megamoe::cuda
