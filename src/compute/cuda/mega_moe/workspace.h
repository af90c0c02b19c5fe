// Memory that only the rank itself uses: counters, the ring of token blocks between dispatch and the return of rows.
#pragma once

#include <cstdint>

#include "compute/mega/layout.h"
#include "compute/mega/schedule.h"

namespace megamoe::cuda {

// Rows of activations are kept as planes of 128 channels: [channel / 128][ring row][128 bytes], each row's 16-byte
// chunks swizzled by row % 8. A block's share of a plane is contiguous and is what the matrix instructions read.
struct WorkspaceLayout {
    // u32 counters, two banks by the parity of the epoch; the idle bank is cleared for the next launch.
    std::int64_t counters = 0;
    std::int32_t bank_words = 0;
    std::int32_t returned = 0;   // [R]      row-tiles returned to each source
    std::int32_t sent = 0;       // [E]      rows counted so far for each expert
    std::int32_t pulled = 0;     // [blocks] rows that lie in the ring
    std::int32_t activated = 0;  // [blocks] first-layer tiles that are done
    std::int32_t finished = 0;   // [blocks] second-layer tiles that are done
    std::int64_t order = 0;      // u8  [max_rows][K] choices of a row by ascending expert; 0xFF = none
    std::int64_t x = 0;          // e4m3 planes of H channels
    std::int64_t x_scale = 0;    // f32 [H / 128][ring rows]
    std::int64_t weight = 0;     // f32 [ring rows] routing weight
    std::int64_t source = 0;     // u32 [ring rows] {source rank : 8 | row * K + choice : 24}
    std::int64_t act = 0;        // e4m3 planes of I channels
    std::int64_t act_scale = 0;  // f32 [I / 128][ring rows]
    std::int64_t bytes = 0;
    std::int32_t ring_blocks = 0;
    std::int32_t ring_rows = 0;
    bool whole = true;  // the ring holds the worst case: no slot is ever used twice in a launch
};

// Fixed counters at the start of a bank.
enum Counter : std::int32_t {
    kTicket = 0,     // [3] next task: of the fused stream, of the first layer alone, of the second alone
    kCounted = 3,    // blocks that have counted their rows
    kLeft = 4,       // blocks that are done
    kPulledAll = 5,  // rows pulled
    kLayer1All = 6,  // first-layer tasks done
    kFixed = 16,
};

MM_HD constexpr WorkspaceLayout workspace_layout(const mega::Shape& s, const mega::Schedule& schedule,
                                                 std::int64_t ring_blocks) {
    const std::int64_t fan_out = s.top_k < s.local_experts() ? s.top_k : s.local_experts();
    const std::int64_t blocks = mega::max_blocks(schedule, std::int64_t{s.num_ranks} * s.max_rows * fan_out);
    const std::int64_t ring = ring_blocks > 0 && ring_blocks < blocks ? ring_blocks : blocks;
    const std::int64_t rows = ring * schedule.block;
    WorkspaceLayout l;
    l.ring_blocks = static_cast<std::int32_t>(ring);
    l.ring_rows = static_cast<std::int32_t>(rows);
    l.whole = ring == blocks;
    l.returned = kFixed;
    l.sent = l.returned + s.num_ranks;
    l.pulled = l.sent + s.num_experts;
    l.activated = l.pulled + static_cast<std::int32_t>(blocks);
    l.finished = l.activated + static_cast<std::int32_t>(blocks);
    l.bank_words = (l.finished + static_cast<std::int32_t>(blocks) + 31) / 32 * 32;
    mega::detail::Carver c;
    l.counters = c.take(std::int64_t{mega::kBanks} * l.bank_words * 4);
    l.order = c.take(std::int64_t{s.max_rows} * s.top_k);
    l.x = c.take(rows * s.hidden);
    l.x_scale = c.take(rows * (s.hidden / 128) * 4);
    l.weight = c.take(rows * 4);
    l.source = c.take(rows * 4);
    l.act = c.take(rows * s.inter);
    l.act_scale = c.take(rows * (s.inter / 128) * 4);
    l.bytes = c.take(0);
    return l;
}

}  // namespace megamoe::cuda
