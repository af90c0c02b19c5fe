// Words that travel between ranks. One 64-bit word carries a value and the launch it belongs to, so that a single
// release store publishes both and a reader can tell this launch's word from the last one's without any reset.
#pragma once

#include <cstdint>

#include "compute/mega/hd.h"

namespace megamoe::mega {

using Cell = std::uint64_t;   // {epoch : 32 | value : 32}
using Epoch = std::uint32_t;  // number of a launch; 0 = never launched, which is what zeroed memory says
inline constexpr Epoch kFirstEpoch = 1;
inline constexpr std::int32_t kBanks = 2;

MM_HD constexpr Cell encode_cell(Epoch epoch, std::uint32_t value) {
    return (Cell{epoch} << 32) | value;
}

// Equality, never order: after the counter wraps an old word may be the larger one.
MM_HD constexpr bool cell_is_of(Cell cell, Epoch epoch) {
    return static_cast<Epoch>(cell >> 32) == epoch;
}

MM_HD constexpr std::uint32_t cell_value(Cell cell) {
    return static_cast<std::uint32_t>(cell);
}

// Skips 0, and skips 1 with it at the wrap: neighbours must differ in parity, because the parity picks the bank.
MM_HD constexpr Epoch next_epoch(Epoch epoch) {
    return epoch == 0xFFFFFFFFU ? 2U : epoch + 1U;
}

// Two banks suffice: a rank leaves launch e only after every peer published its counts of e, and a peer publishes those
// of e + 1 only after it left e. So no peer is ever more than one launch ahead.
MM_HD constexpr std::int32_t bank_of(Epoch epoch) {
    return static_cast<std::int32_t>(epoch & 1U);
}

}  // namespace megamoe::mega
