#include "kv/page_allocator.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <vector>

namespace megamoe::kv {
namespace {

std::vector<const PageTable*> pointers(const std::vector<PageTable>& tables) {
    std::vector<const PageTable*> out;
    for (const PageTable& table : tables) {
        out.push_back(&table);
    }
    return out;
}

TEST(PageAllocator, KeepsEveryPageEitherFreeOrOwnedOnceUnderRandomUse) {
    EXPECT_TRUE(rc::check([] {
        PageAllocator allocator(*rc::gen::inRange(1, 40));
        std::vector<PageTable> tables;
        const auto num_moves = *rc::gen::inRange(0, 80);
        for (int i = 0; i < num_moves; ++i) {
            const auto move = *rc::gen::inRange(0, 4);
            if (move == 0 || tables.empty()) {
                tables.emplace_back(allocator);
                continue;
            }
            const auto at = *rc::gen::inRange<std::size_t>(0, tables.size());
            PageTable& table = tables[at];
            if (move == 1) {
                const auto size = table.size() + *rc::gen::inRange(0, 9);
                if (table.can_grow_to(size)) {
                    table.grow_to(size);
                }
            } else if (move == 2) {
                table.drop_before(*rc::gen::inRange(0, table.size() + 1));
            } else {
                tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(at));
            }
            std::int32_t owned = 0;
            for (const PageTable& t : tables) {
                owned += t.num_owned();
                RC_ASSERT(std::count(t.pages().begin(), t.pages().end(), 0) == t.size() - t.num_owned());
            }
            RC_ASSERT(owned == allocator.num_held());
            const auto census = allocator.census(pointers(tables));
            RC_ASSERT(bool(census));
        }
    }));
}

TEST(PageAllocator, NeverHandsOutPageZero) {
    PageAllocator allocator(5);
    PageTable table(allocator);

    table.grow_to(4);

    EXPECT_EQ((std::vector(table.pages().begin(), table.pages().end())), (std::vector{1, 2, 3, 4}));
    EXPECT_FALSE(table.can_grow_to(5));
}

TEST(PageAllocator, DroppedPagesServeOthersAndReadAsZero) {
    PageAllocator allocator(4);
    PageTable old(allocator);
    PageTable young(allocator);
    old.grow_to(3);

    old.drop_before(2);
    young.grow_to(2);

    EXPECT_EQ((std::vector(old.pages().begin(), old.pages().end())), (std::vector{0, 0, 3}));
    EXPECT_EQ((std::vector(young.pages().begin(), young.pages().end())), (std::vector{2, 1}));
}

TEST(PageAllocator, MovingATableMovesTheOwnership) {
    PageAllocator allocator(4);
    PageTable from(allocator);
    from.grow_to(2);

    PageTable to(std::move(from));

    EXPECT_EQ(to.num_owned(), 2);
    EXPECT_EQ(from.num_owned(), 0);  // NOLINT: the state after a move is part of the contract
    EXPECT_EQ(allocator.num_held(), 2);
}

TEST(PageAllocator, CensusMissesNoForgottenTable) {
    PageAllocator allocator(4);
    PageTable known(allocator);
    PageTable forgotten(allocator);
    known.grow_to(1);
    forgotten.grow_to(2);

    const auto census = allocator.census(std::vector<const PageTable*>{&known});

    ASSERT_FALSE(census);
    EXPECT_EQ(census.error().what, "3 pages of 3 are out, but only 1 have an owner");
}

TEST(PageAllocator, CensusSeesATableCountedTwice) {
    PageAllocator allocator(4);
    PageTable table(allocator);
    table.grow_to(1);

    EXPECT_FALSE(allocator.census(std::vector<const PageTable*>{&table, &table}));
}

TEST(PageAllocator, TheReservedTableOwnsNothing) {
    PageAllocator allocator(1);
    const PageTable dummy = PageTable::reserved(allocator);

    EXPECT_EQ(dummy.size(), 1);
    EXPECT_EQ(dummy.pages()[0], 0);
    EXPECT_EQ(dummy.num_owned(), 0);
    EXPECT_TRUE(allocator.census(std::vector<const PageTable*>{&dummy}));
}

TEST(PageAllocatorDeathTest, GrowingPastTheFreePagesIsABug) {
    PageAllocator allocator(2);
    PageTable table(allocator);

    EXPECT_DEATH(table.grow_to(2), "pages 2 free 1");
}

}  // namespace
}  // namespace megamoe::kv
