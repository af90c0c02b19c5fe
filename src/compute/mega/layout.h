// What lies where in a rank's symmetric heap: the part of memory that peers read and write. Pure arithmetic, the same
// on host and device and on every rank.
#pragma once

#include <cstdint>

#include "compute/mega/cell.h"
#include "compute/mega/hd.h"

namespace megamoe::mega {

inline constexpr std::int32_t kMaxRanks = 64;
inline constexpr std::int32_t kScaleGroup = 128;  // channels that share an activation scale

// All that must agree between ranks.
struct Shape {
    std::int32_t num_ranks = 1;    // [R]
    std::int32_t num_experts = 0;  // [E], a multiple of R; rank r owns [r*E/R, (r+1)*E/R)
    std::int32_t top_k = 0;        // [K]
    std::int32_t hidden = 0;       // [H]
    std::int32_t inter = 0;        // [I]
    std::int32_t max_rows = 0;     // MTPR: rows a rank may bring to one launch

    MM_HD constexpr std::int32_t local_experts() const { return num_experts / num_ranks; }
    MM_HD constexpr std::int32_t owner_of(std::int32_t expert) const { return expert / local_experts(); }
};

// Bytes of one row on its way to an expert and back.
struct Wire {
    std::int64_t row_bytes = 0;     // payload towards the expert
    std::int64_t scale_bytes = 0;   // its scales; 0 = the payload needs none
    std::int64_t return_bytes = 0;  // result of one (row, choice) pair
};

// E4M3 with a float32 scale for each 128 channels, back in BF16.
MM_HD constexpr Wire fp8_wire(std::int32_t hidden) {
    return {hidden, std::int64_t{4} * ((hidden + kScaleGroup - 1) / kScaleGroup), std::int64_t{2} * hidden};
}

// First words of a heap.
struct Control {
    Epoch epoch;              // of the next launch; the launch itself advances it, so a captured graph may be replayed
    std::uint32_t status;     // Status, sticky
    std::uint32_t detail[6];  // who waited: {edge, peer, expected, seen, ...}; written once, with the first status
    Cell abort;               // set by any rank that gave up on this epoch; every wait loop looks at it
};

enum class Status : std::uint32_t { kOk = 0, kTimeout = 1, kOverflow = 2, kPeerAborted = 3 };

struct HeapLayout {
    std::int64_t control = 0;  // Control
    std::int64_t counts =
        0;                  // Cell [bank][local expert][source]: rows that `source` sends to this expert; 0 is sent too
    std::int64_t done = 0;  // Cell [bank][expert rank]: rows that this rank has returned to us
    std::int64_t index = 0;        // u32 [bank][local expert][source][max_rows]: row * K + choice at the source
    std::int64_t x = 0;            // [max_rows] rows of Wire::row_bytes
    std::int64_t x_scale = 0;      // [max_rows] of Wire::scale_bytes
    std::int64_t topk_id = 0;      // i32 [max_rows][K]; outside [0, E): dispatched nowhere
    std::int64_t topk_weight = 0;  // f32 [max_rows][K]
    std::int64_t combine = 0;      // [max_rows][K] rows of Wire::return_bytes, written by the expert ranks
    std::int64_t bytes = 0;
};

namespace detail {

struct Carver {
    std::int64_t end = 0;
    MM_HD constexpr std::int64_t take(std::int64_t bytes) {
        const std::int64_t begin = (end + 127) / 128 * 128;
        end = begin + bytes;
        return begin;
    }
};

}  // namespace detail

MM_HD constexpr HeapLayout heap_layout(const Shape& s, const Wire& w) {
    const std::int64_t rows = s.max_rows;
    const std::int64_t pairs = rows * s.top_k;
    const std::int64_t lists = std::int64_t{kBanks} * s.num_experts;  // local experts x sources
    detail::Carver c;
    HeapLayout l;
    l.control = c.take(sizeof(Control));
    l.counts = c.take(lists * std::int64_t{sizeof(Cell)});
    l.done = c.take(std::int64_t{kBanks} * s.num_ranks * std::int64_t{sizeof(Cell)});
    l.index = c.take(lists * rows * 4);
    l.x = c.take(rows * w.row_bytes);
    l.x_scale = c.take(rows * w.scale_bytes);
    l.topk_id = c.take(pairs * 4);
    l.topk_weight = c.take(pairs * 4);
    l.combine = c.take(pairs * w.return_bytes);
    l.bytes = c.take(0);
    return l;
}

MM_HD constexpr std::int64_t heap_bytes(const Shape& s, const Wire& w) {
    return heap_layout(s, w).bytes;
}

// Position of a word inside `counts`, and of a list inside `index` (in lists of max_rows words).
MM_HD constexpr std::int64_t count_index(const Shape& s, Epoch epoch, std::int32_t local_expert, std::int32_t source) {
    return (std::int64_t{bank_of(epoch)} * s.local_experts() + local_expert) * s.num_ranks + source;
}

MM_HD constexpr std::int64_t done_index(const Shape& s, Epoch epoch, std::int32_t expert_rank) {
    return std::int64_t{bank_of(epoch)} * s.num_ranks + expert_rank;
}

// Differs between two ranks whose heaps would not fit together. Exchange and compare it once, at creation.
MM_HD constexpr std::uint64_t layout_hash(const Shape& s, const Wire& w) {
    const std::int64_t words[] = {2,          s.num_ranks, s.num_experts, s.top_k,        s.hidden,        s.inter,
                                  s.max_rows, w.row_bytes, w.scale_bytes, w.return_bytes, heap_bytes(s, w)};
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (const std::int64_t word : words) {
        hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x100000001B3U;
    }
    return hash;
}

}  // namespace megamoe::mega
