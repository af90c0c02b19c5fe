#include "base/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace megamoe {
namespace {

TEST(Workers, EveryIndexRunsOnceForAnyTeamSize) {
    for (const int threads : {1, 2, 3, 8}) {
        Workers workers(threads);
        for (const int count : {0, 1, 2, 7, 1000}) {
            std::vector<std::atomic<int>> hits(static_cast<std::size_t>(count));

            workers.run(count, [&](std::int64_t i) { hits[static_cast<std::size_t>(i)]++; });

            for (const auto& hit : hits) {
                EXPECT_EQ(hit.load(), 1) << threads << " threads, " << count << " indices";
            }
        }
    }
}

TEST(Workers, ManyShortLoopsInARowAllFinish) {
    Workers workers(3);
    std::atomic<std::int64_t> sum{0};

    for (int loop = 0; loop < 5000; ++loop) {
        workers.run(3, [&](std::int64_t i) { sum += i; });
    }

    EXPECT_EQ(sum.load(), 5000 * 3);
}

}  // namespace
}  // namespace megamoe
