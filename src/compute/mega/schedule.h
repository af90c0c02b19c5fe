// The order of work on an expert rank: one stream of numbered tasks, a pure function of the row counts, so that every
// worker derives the same stream alone and a shared ticket counter is all they need to share.
//
// Rows of an expert are cut into blocks of `block` rows, blocks into units of up to `unit_blocks` blocks. A task is one
// weight tile times one block. Step s of the stream holds the first-layer tasks of unit s, then the second-layer tasks
// of unit s - lag: the second layer returns rows to their sources, and the lag keeps that traffic behind the first wave
// of pulls. Inside a unit the blocks of one weight tile follow each other, so the tile comes from memory once.
//
// No deadlock, if every ticket that was drawn is worked on: a second-layer task waits for first-layer tasks with
// smaller tickets only, and a ring slot is reused only behind tasks with smaller tickets (min_ring_blocks).
#pragma once

#include <cstdint>

#include "compute/mega/hd.h"

namespace megamoe::mega {

struct Schedule {
    std::int32_t num_experts = 0;  // of this rank
    std::int32_t block = 0;        // rows
    std::int32_t unit_blocks = 8;
    std::int32_t lag = 8;     // units, >= 0
    std::int32_t tiles1 = 0;  // weight tiles of the first layer (gate and up)
    std::int32_t tiles2 = 0;  // weight tiles of the second layer (down)
};

// Where an expert's rows begin in the sequences of blocks and units. An array of these has num_experts + 1 entries; the
// last holds the totals.
struct ExpertBegin {
    std::int32_t block = 0;
    std::int32_t unit = 0;
};

MM_HD constexpr std::int32_t ceil_div(std::int32_t a, std::int32_t b) {
    return (a + b - 1) / b;
}

MM_HD constexpr ExpertBegin advance(const Schedule& s, ExpertBegin at, std::int32_t rows) {
    const std::int32_t blocks = ceil_div(rows, s.block);
    return {at.block + blocks, at.unit + ceil_div(blocks, s.unit_blocks)};
}

// In    rows   [num_experts]
// Out   begin  [num_experts + 1]
MM_HD constexpr void fill_begins(const Schedule& s, const std::int32_t* rows, ExpertBegin* begin) {
    begin[0] = {};
    for (std::int32_t e = 0; e < s.num_experts; ++e) {
        begin[e + 1] = advance(s, begin[e], rows[e]);
    }
}

MM_HD constexpr std::int64_t num_tasks(const Schedule& s, const ExpertBegin& total) {
    return std::int64_t{total.block} * (s.tiles1 + s.tiles2);
}

// Largest numbers of blocks for `rows` rows however they fall on the experts.
MM_HD constexpr std::int64_t max_blocks(const Schedule& s, std::int64_t rows) {
    return rows / s.block + (rows < s.num_experts ? rows : s.num_experts);
}

// Fewest block slots of a ring that cannot deadlock.
MM_HD constexpr std::int32_t min_ring_blocks(const Schedule& s) {
    return (s.lag + 1) * s.unit_blocks;
}

struct Task {
    std::int32_t layer = 0;  // 1 or 2
    std::int32_t expert = 0;
    std::int32_t block = 0;      // in the rank's sequence of blocks
    std::int32_t first_row = 0;  // of the block, in the expert's rows
    std::int32_t tile = 0;       // weight tile
};

// Ticket -> task. Tickets that one cursor is asked for must not decrease; a whole walk costs one pass over the units.
class TaskCursor {
  public:
    MM_HD TaskCursor(const Schedule& schedule, const ExpertBegin* begin) : s_(schedule), begin_(begin) {
        settle(expert1_, 0);
        settle(expert2_, -s_.lag);
    }

    // False: the stream ends before this ticket.
    MM_HD bool seek(std::int64_t ticket, Task& task) {
        const std::int32_t units = begin_[s_.num_experts].unit;
        while (step_ < units + s_.lag) {
            const std::int32_t blocks1 = step_ < units ? unit_size(expert1_, step_) : 0;
            const std::int32_t blocks2 = step_ >= s_.lag ? unit_size(expert2_, step_ - s_.lag) : 0;
            const std::int64_t first = ticket - step_begin_;
            const std::int64_t second = first - std::int64_t{blocks1} * s_.tiles1;
            if (second < 0) {
                task = make(1, expert1_, step_, blocks1, static_cast<std::int32_t>(first));
                return true;
            }
            if (second < std::int64_t{blocks2} * s_.tiles2) {
                task = make(2, expert2_, step_ - s_.lag, blocks2, static_cast<std::int32_t>(second));
                return true;
            }
            step_begin_ += std::int64_t{blocks1} * s_.tiles1 + std::int64_t{blocks2} * s_.tiles2;
            ++step_;
            settle(expert1_, step_);
            settle(expert2_, step_ - s_.lag);
        }
        return false;
    }

  private:
    // Moves `expert` on to the one that unit `unit` belongs to.
    MM_HD void settle(std::int32_t& expert, std::int32_t unit) const {
        while (expert < s_.num_experts && begin_[expert + 1].unit <= unit) {
            ++expert;
        }
    }

    MM_HD std::int32_t unit_size(std::int32_t expert, std::int32_t unit) const {
        const std::int32_t left =
            begin_[expert + 1].block - begin_[expert].block - (unit - begin_[expert].unit) * s_.unit_blocks;
        return left < s_.unit_blocks ? left : s_.unit_blocks;
    }

    MM_HD Task make(std::int32_t layer, std::int32_t expert, std::int32_t unit, std::int32_t blocks,
                    std::int32_t local) const {
        const std::int32_t in_expert = (unit - begin_[expert].unit) * s_.unit_blocks + local % blocks;
        return {layer, expert, begin_[expert].block + in_expert, in_expert * s_.block, local / blocks};
    }

    Schedule s_;
    const ExpertBegin* begin_;
    std::int32_t step_ = 0;
    std::int64_t step_begin_ = 0;  // tickets before this step
    std::int32_t expert1_ = 0;     // of unit step_
    std::int32_t expert2_ = 0;     // of unit step_ - lag
};

}  // namespace megamoe::mega
