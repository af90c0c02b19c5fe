// Waiting for words that other ranks write, with a limit and a reason. Every wait of the fused operator for another
// rank goes through here.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "comm/rank_group.h"
#include "compute/mega/cell.h"
#include "compute/mega/layout.h"
#include "compute/mega/rank_view.h"
#include "moe/edge.h"

namespace megamoe::moe {

struct WaitPolicy {
    std::int64_t timeout_ms = 30000;  // 0 = never
};

inline void publish(mega::Cell* cell, mega::Epoch epoch, std::uint32_t value) {
    std::atomic_ref<mega::Cell>(*cell).store(mega::encode_cell(epoch, value), std::memory_order_release);
}

// The cell's value if it is of this epoch.
inline std::optional<std::uint32_t> try_read(mega::Cell* cell, mega::Epoch epoch) {
    const mega::Cell seen = std::atomic_ref<mega::Cell>(*cell).load(std::memory_order_acquire);
    return mega::cell_is_of(seen, epoch) ? std::optional(mega::cell_value(seen)) : std::nullopt;
}

// Waits for a peer's cell of this epoch.
//
// Error kUnavailable: the limit passed (names who waits, for whom, on which edge, and what the cell showed; all peers
//       are told), a peer gave up on this launch or an earlier one (names it and whom it missed), or the rank group
//       failed. The reason stands in the control words of this rank.
// Cost  a short spin, then yields: ranks may outnumber cores
[[nodiscard]] Result<std::uint32_t> wait_cell(const comm::RankContext& context, const mega::RankView& view,
                                              const WaitPolicy& policy, mega::Cell* cell, mega::Epoch epoch, Edge edge,
                                              std::int32_t peer);

}  // namespace megamoe::moe
