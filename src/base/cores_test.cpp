#include "base/cores.h"

#include <gtest/gtest.h>

#include <thread>

namespace megamoe {
namespace {

TEST(Cores, AThreadAndThoseItStartsStayWhereTheyWerePut) {
    const auto all = allowed_cores();
    ASSERT_FALSE(all.empty());
    std::vector<std::int32_t> seen;
    std::thread([&] {
        ASSERT_TRUE(keep_on_cores({&all.back(), 1}));
        std::thread([&] { seen = allowed_cores(); }).join();
    }).join();

    EXPECT_EQ(seen, std::vector<std::int32_t>{all.back()});
    EXPECT_EQ(allowed_cores(), all);
}

TEST(Cores, NoCoreIsRefused) {
    EXPECT_FALSE(keep_on_cores({}));
}

}  // namespace
}  // namespace megamoe
