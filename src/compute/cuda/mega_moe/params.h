// Everything a launch of the fused operator reads. Passed by value; nothing in it changes while a captured graph lives.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "compute/cuda/mega_moe/panel.h"
#include "compute/cuda/mega_moe/workspace.h"
#include "compute/mega/layout.h"
#include "compute/mega/schedule.h"

namespace megamoe::cuda {

inline constexpr std::int32_t kMaxLaunchRanks = 8;
inline constexpr std::int32_t kMaxCountCells = 1024;  // local experts x ranks
inline constexpr std::int32_t kMaxExperts = 1024;     // in all
inline constexpr std::int32_t kMaxLocalExperts = 384;

// One rank that this launch plays.
struct RankParams {
    std::byte* workspace;
    const std::byte* w13;          // panels [local expert][I / 128][H / 128]
    const std::byte* w2;           // panels [local expert][ceil(H / 256)][I / 128]
    const std::int32_t* num_rows;  // device scalar, 0..max_rows; read at replay
    const __nv_bfloat16* shared;   // [rows, H] added last; may be null
    __nv_bfloat16* out;            // [rows, H]
};

// Parts of the operator. A launch that has them all is the fused one; `standard` launches them one by one.
enum Phase : std::uint32_t {
    kCount = 1,
    kPull = 2,
    kLayer1 = 4,
    kLayer2 = 8,
    kReduce = 16,
    kAllPhases = 31,
};

struct MegaMoeParams {
    mega::Shape shape;
    mega::HeapLayout heap;
    WorkspaceLayout workspace;
    mega::Schedule schedule;
    std::byte* heap_base[kMaxLaunchRanks];  // of every rank, addressable from this device
    RankParams rank[kMaxLaunchRanks];       // of the ranks [first_rank, first_rank + launch_ranks)
    std::int32_t first_rank;
    std::int32_t launch_ranks;     // ranks played by this launch
    std::int32_t blocks_per_rank;  // thread blocks
    std::int32_t prefetch_panels;  // panels to prefetch before the counts are known; 0 when few experts are expected
    std::uint32_t phases;
    std::uint32_t overlap;     // 1: MegaMoE 2. 0: MegaMoE 1, a phase starts when the one before is over
    float clamp;               // swiglu limit; infinity = none
    std::uint32_t delay_ns;    // tests: random waits up to this long at every protocol step
    std::uint64_t timeout_ns;  // 0 = never
};

}  // namespace megamoe::cuda
