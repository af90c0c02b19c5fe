// The stream of tasks cannot deadlock: every task waits for smaller tickets only, so the smallest unfinished one can
// always run, and whoever drew it is running it.
#include "compute/mega/schedule.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

namespace megamoe::moe {
namespace {

struct Stream {
    mega::Schedule schedule;
    std::vector<std::int32_t> rows;  // [expert]
    std::vector<mega::ExpertBegin> begins;

    Stream(const mega::Schedule& s, std::vector<std::int32_t> r)
        : schedule(s), rows(std::move(r)), begins(rows.size() + 1) {
        mega::fill_begins(schedule, rows.data(), begins.data());
    }
    std::vector<mega::Task> tasks() const {
        std::vector<mega::Task> all;
        mega::TaskCursor cursor(schedule, begins.data());
        for (mega::Task task; cursor.seek(static_cast<std::int64_t>(all.size()), task);) {
            all.push_back(task);
        }
        return all;
    }
};

Stream random_stream() {
    const auto experts = *rc::gen::inRange<std::int32_t>(1, 7);
    const mega::Schedule s{.num_experts = experts,
                           .block = *rc::gen::inRange<std::int32_t>(1, 5),
                           .unit_blocks = *rc::gen::inRange<std::int32_t>(1, 5),
                           .lag = *rc::gen::inRange<std::int32_t>(0, 6),
                           .tiles1 = *rc::gen::inRange<std::int32_t>(1, 4),
                           .tiles2 = *rc::gen::inRange<std::int32_t>(1, 4)};
    // Half of the experts get nothing: the case that used to hang such schedulers elsewhere.
    const auto count = rc::gen::weightedOneOf<std::int32_t>(
        {{1, rc::gen::just<std::int32_t>(0)}, {1, rc::gen::inRange<std::int32_t>(0, 40)}});
    return {s, *rc::gen::container<std::vector<std::int32_t>>(static_cast<std::size_t>(experts), count)};
}

// The first ticket that waits for itself or a larger one; -1: none. A first-layer task needs its block pulled, which
// tile 0 does once the slot's last block is through; a second-layer task needs all first-layer tasks of its block.
std::int64_t first_stuck(const Stream& stream, std::int32_t ring_blocks) {
    std::map<std::int32_t, std::int32_t> pulled;
    std::map<std::int32_t, std::int32_t> first;
    std::map<std::int32_t, std::int32_t> second;
    std::int64_t ticket = 0;
    for (const mega::Task& task : stream.tasks()) {
        if (task.layer == 1) {
            const bool slot_free =
                task.block < ring_blocks || second[task.block - ring_blocks] == stream.schedule.tiles2;
            if (task.tile == 0 ? !slot_free : pulled[task.block] == 0) {
                return ticket;
            }
            pulled[task.block] = 1;
            ++first[task.block];
        } else {
            if (first[task.block] != stream.schedule.tiles1) {
                return ticket;
            }
            ++second[task.block];
        }
        ++ticket;
    }
    return -1;
}

TEST(TaskStream, NoTaskWaitsForALargerTicketInARingThatIsLargeEnough) {
    EXPECT_TRUE(rc::check([] {
        const Stream stream = random_stream();
        const std::int32_t ring = mega::min_ring_blocks(stream.schedule) + *rc::gen::inRange<std::int32_t>(0, 4);

        RC_ASSERT(first_stuck(stream, ring) == -1);
    }));
}

TEST(TaskStream, OneSlotLessThanTheMinimumDeadlocksFullUnits) {
    EXPECT_TRUE(rc::check([] {
        mega::Schedule s = random_stream().schedule;
        s.num_experts = 1;
        RC_PRE(mega::min_ring_blocks(s) > 1);
        const Stream stream(s, {s.block * s.unit_blocks * (s.lag + 2)});

        RC_ASSERT(first_stuck(stream, mega::min_ring_blocks(s)) == -1);
        RC_ASSERT(first_stuck(stream, mega::min_ring_blocks(s) - 1) >= 0);
    }));
}

TEST(TaskStream, HoldsEveryTileOfEveryBlockInBothLayersOnce) {
    EXPECT_TRUE(rc::check([] {
        const Stream stream = random_stream();
        const mega::Schedule& s = stream.schedule;
        std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>> got;
        const auto tasks = stream.tasks();
        for (const mega::Task& t : tasks) {
            RC_ASSERT(t.block == stream.begins[static_cast<std::size_t>(t.expert)].block + t.first_row / s.block);
            RC_ASSERT(t.first_row % s.block == 0 && t.first_row < stream.rows[static_cast<std::size_t>(t.expert)]);
            RC_ASSERT(t.tile >= 0 && t.tile < (t.layer == 1 ? s.tiles1 : s.tiles2));
            got.insert({t.layer, t.expert, t.first_row, t.tile});
        }

        RC_ASSERT(got.size() == tasks.size());
        RC_ASSERT(static_cast<std::int64_t>(tasks.size()) == mega::num_tasks(s, stream.begins.back()));
        const auto rows = std::accumulate(stream.rows.begin(), stream.rows.end(), std::int64_t{0});
        RC_ASSERT(stream.begins.back().block <= mega::max_blocks(s, rows));
    }));
}

TEST(TaskStream, ACursorThatSkipsTicketsFindsTheSameTasks) {
    EXPECT_TRUE(rc::check([] {
        const Stream stream = random_stream();
        const auto tasks = stream.tasks();
        mega::TaskCursor cursor(stream.schedule, stream.begins.data());
        const auto stride = *rc::gen::inRange<std::size_t>(1, 9);
        for (std::size_t ticket = 0; ticket < tasks.size(); ticket += stride) {
            mega::Task t;
            RC_ASSERT(cursor.seek(static_cast<std::int64_t>(ticket), t));
            const mega::Task& want = tasks[ticket];
            RC_ASSERT(std::tie(t.layer, t.expert, t.block, t.first_row, t.tile) ==
                      std::tie(want.layer, want.expert, want.block, want.first_row, want.tile));
        }
    }));
}

}  // namespace
}  // namespace megamoe::moe
