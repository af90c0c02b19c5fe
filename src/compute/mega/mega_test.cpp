#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <tuple>
#include <vector>

#include "compute/mega/layout.h"
#include "compute/mega/schedule.h"

namespace megamoe::mega {
namespace {

struct Stream {
    Schedule schedule;
    std::vector<std::int32_t> rows;
    std::vector<ExpertBegin> begin;
    std::vector<Task> tasks;
};

Stream any_stream() {
    Stream s;
    s.schedule.num_experts = *rc::gen::inRange(1, 12);
    s.schedule.block = 8 * *rc::gen::inRange(1, 5);
    s.schedule.unit_blocks = *rc::gen::inRange(1, 5);
    s.schedule.lag = *rc::gen::inRange(0, 20);
    s.schedule.tiles1 = *rc::gen::inRange(1, 5);
    s.schedule.tiles2 = *rc::gen::inRange(1, 5);
    const auto count = static_cast<std::size_t>(s.schedule.num_experts);
    s.rows = *rc::gen::container<std::vector<std::int32_t>>(count,
                                                            rc::gen::oneOf(rc::gen::just(0), rc::gen::inRange(0, 300)));
    s.begin.resize(count + 1);
    fill_begins(s.schedule, s.rows.data(), s.begin.data());
    TaskCursor cursor(s.schedule, s.begin.data());
    Task task;
    for (std::int64_t ticket = 0; cursor.seek(ticket, task); ++ticket) {
        s.tasks.push_back(task);
    }
    return s;
}

TEST(Schedule, EveryTileMeetsEveryBlockOnceInEachLayer) {
    EXPECT_TRUE(rc::check([] {
        const Stream s = any_stream();
        RC_ASSERT(static_cast<std::int64_t>(s.tasks.size()) == num_tasks(s.schedule, s.begin.back()));
        std::set<std::tuple<int, int, int>> seen;
        for (const Task& t : s.tasks) {
            RC_ASSERT(t.tile < (t.layer == 1 ? s.schedule.tiles1 : s.schedule.tiles2));
            const auto e = static_cast<std::size_t>(t.expert);
            RC_ASSERT(t.block == s.begin[e].block + t.first_row / s.schedule.block);
            RC_ASSERT(t.block < s.begin[e + 1].block);
            RC_ASSERT(t.first_row < s.rows[e]);
            RC_ASSERT(seen.emplace(t.layer, t.block, t.tile).second);
        }
    }));
}

TEST(Schedule, ASecondLayerTaskComesAfterAllFirstLayerTasksOfItsBlock) {
    EXPECT_TRUE(rc::check([] {
        const Stream s = any_stream();
        std::vector<int> first_done(static_cast<std::size_t>(s.begin.back().block));
        for (const Task& t : s.tasks) {
            auto& done = first_done[static_cast<std::size_t>(t.block)];
            if (t.layer == 1) {
                ++done;
            } else {
                RC_ASSERT(done == s.schedule.tiles1);
            }
        }
    }));
}

TEST(Schedule, ARingSlotIsFreeBeforeTheStreamComesBackToIt) {
    EXPECT_TRUE(rc::check([] {
        const Stream s = any_stream();
        const std::int32_t ring = min_ring_blocks(s.schedule);
        std::vector<int> second_done(static_cast<std::size_t>(s.begin.back().block));
        for (const Task& t : s.tasks) {
            if (t.layer == 2) {
                ++second_done[static_cast<std::size_t>(t.block)];
            } else if (t.block >= ring) {
                RC_ASSERT(second_done[static_cast<std::size_t>(t.block - ring)] == s.schedule.tiles2);
            }
        }
    }));
}

TEST(Schedule, ACursorThatSkipsTicketsSeesTheSameTasks) {
    EXPECT_TRUE(rc::check([] {
        const Stream s = any_stream();
        TaskCursor cursor(s.schedule, s.begin.data());
        const auto stride = static_cast<std::size_t>(*rc::gen::inRange(1, 9));
        Task task;
        for (std::size_t i = 0; i < s.tasks.size(); i += stride) {
            RC_ASSERT(cursor.seek(static_cast<std::int64_t>(i), task));
            RC_ASSERT(std::tie(task.layer, task.block, task.tile) ==
                      std::tie(s.tasks[i].layer, s.tasks[i].block, s.tasks[i].tile));
        }
        RC_ASSERT(!cursor.seek(static_cast<std::int64_t>(s.tasks.size()), task));
    }));
}

TEST(Schedule, BlocksNeverExceedTheirBound) {
    EXPECT_TRUE(rc::check([] {
        const Stream s = any_stream();
        std::int64_t rows = 0;
        for (const std::int32_t r : s.rows) {
            rows += r;
        }
        RC_ASSERT(s.begin.back().block <= max_blocks(s.schedule, rows));
    }));
}

TEST(Cell, KeepsItsTwoHalvesApart) {
    EXPECT_TRUE(rc::check([](std::uint32_t epoch, std::uint32_t value) {
        const Cell cell = encode_cell(epoch, value);
        RC_ASSERT(cell_is_of(cell, epoch));
        RC_ASSERT(!cell_is_of(cell, next_epoch(epoch)));
        RC_ASSERT(cell_value(cell) == value);
    }));
}

TEST(Cell, EpochsAlternateBanksAndNeverReturnToZero) {
    for (const Epoch start : {kFirstEpoch, Epoch{0xFFFFFFF0U}}) {
        Epoch epoch = start;
        for (int i = 0; i < 40; ++i) {
            const Epoch next = next_epoch(epoch);
            EXPECT_NE(next, 0U);
            EXPECT_NE(bank_of(next), bank_of(epoch));
            EXPECT_FALSE(cell_is_of(Cell{0}, next));
            epoch = next;
        }
    }
}

TEST(HeapLayout, RegionsFollowEachOtherWithoutOverlap) {
    const Shape s{.num_ranks = 8, .num_experts = 384, .top_k = 6, .hidden = 7168, .inter = 3072, .max_rows = 2048};
    const HeapLayout l = heap_layout(s, fp8_wire(s.hidden));
    EXPECT_GE(l.counts, std::int64_t{sizeof(Control)});
    EXPECT_GE(l.done, l.counts + 2 * 384 * 8);
    EXPECT_GE(l.index, l.done + 2 * 8 * 8);
    EXPECT_GE(l.x, l.index + std::int64_t{2} * 384 * 2048 * 4);
    EXPECT_GE(l.x_scale, l.x + std::int64_t{2048} * 7168);
    EXPECT_GE(l.topk_id, l.x_scale + 2048 * 56 * 4);
    EXPECT_GE(l.topk_weight, l.topk_id + 2048 * 6 * 4);
    EXPECT_GE(l.combine, l.topk_weight + 2048 * 6 * 4);
    EXPECT_GE(l.bytes, l.combine + std::int64_t{2048} * 6 * 7168 * 2);
    EXPECT_EQ(count_index(s, 3, 47, 7) + 1, 2 * 384);
}

TEST(HeapLayout, HashTellsShapesApart) {
    const Shape a{.num_ranks = 2, .num_experts = 8, .top_k = 2, .hidden = 256, .inter = 128, .max_rows = 16};
    Shape b = a;
    b.max_rows = 17;
    EXPECT_NE(layout_hash(a, fp8_wire(256)), layout_hash(b, fp8_wire(256)));
    EXPECT_EQ(layout_hash(a, fp8_wire(256)), layout_hash(a, fp8_wire(256)));
}

}  // namespace
}  // namespace megamoe::mega
