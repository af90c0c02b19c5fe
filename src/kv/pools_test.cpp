#include "kv/pools.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <map>
#include <vector>

#include "kv/pool_plan.h"

namespace megamoe::kv {
namespace {

// Four layers of every kind; page 16, window 6.
ModelGeometry small_geometry() {
    ModelGeometry g;
    g.num_layers = 4;
    g.ratios = {0, 4, 16, 4};
    g.head_dim = 10;
    g.index_dim = 6;
    g.window = 6;
    return g;
}

PoolLayout small_layout(std::int32_t value_bytes = 2) {
    return make_layout(small_geometry(), 16, value_bytes).take();
}

TEST(PoolLayout, GivesEveryRowOfEveryGroupBytesOfItsOwn) {
    const PoolLayout layout = small_layout();
    const auto pools = Pools::create(layout, {.token_pages = 3, .window_pages = 3, .state_slots = 3}).take();
    std::map<const std::byte*, std::int64_t> rows;  // start -> bytes
    const auto add = [&](const void* row, std::int64_t bytes) {
        ASSERT_TRUE(rows.emplace(static_cast<const std::byte*>(row), bytes).second);
    };
    for (std::int32_t l = 0; l < 4; ++l) {
        const LayerLayout& layer = layout.layers[static_cast<std::size_t>(l)];
        for (std::int32_t page = 0; page < 3; ++page) {
            for (std::int32_t i = 0; i < layout.page_size; ++i) {
                add(pools->window_row(l, page, i), layout.row_bytes);
            }
            for (std::int32_t i = 0; i < layer.entries_per_page; ++i) {
                add(pools->entry_row(l, page, i), layout.row_bytes);
                if (layer.ratio == 4) {
                    add(pools->index_row(l, page, i), layout.index_bytes);
                }
            }
            for (std::int32_t i = 0; i < layer.state_ring; ++i) {
                add(pools->state(l, StateKind::kAttention, page) + i * layer.attention_width,
                    layer.attention_width * 4);
                if (layer.ratio == 4) {
                    add(pools->state(l, StateKind::kIndexer, page) + i * layer.indexer_width, layer.indexer_width * 4);
                }
            }
        }
    }

    for (auto it = rows.begin(), next = std::next(it); next != rows.end(); ++it, ++next) {
        ASSERT_LE(it->first + it->second, next->first);
    }
    for (const auto& [row, bytes] : rows) {  // and inside the mapping: it would fault otherwise
        std::memset(const_cast<std::byte*>(row), 0xAB, static_cast<std::size_t>(bytes));
    }
    EXPECT_EQ(rows.size(), 3U * (4 * 16 + 2 * (4 + 4 + 8 + 8) + 1 + 16));
}

TEST(PoolLayout, CountsTheReleasedFlashGeometryAsTheSpecDoes) {
    ModelGeometry flash;
    flash.num_layers = 43;
    flash.ratios.assign(43, 0);
    for (std::size_t l = 2; l < 43; ++l) {
        flash.ratios[l] = l % 2 == 0 ? 4 : 128;  // 21 CSA and 20 HCA layers
    }
    flash.head_dim = 512;
    flash.index_dim = 128;
    flash.window = 128;

    const PoolLayout layout = make_layout(flash, 256, 2).take();

    EXPECT_EQ(layout.token_page_bytes, 256 * 6880);                                         // bytes a token in bfloat16
    EXPECT_EQ(layout.window_page_bytes, 256 * 43 * 1024);                                   // k_t of every layer
    EXPECT_NEAR(static_cast<double>(layout.state_slot_bytes()) / (1 << 20), 11.64, 0.005);  // MiB a request
}

TEST(PoolLayout, RefusesAPageThatCutsAWindowOfTokens) {
    const auto layout = make_layout(small_geometry(), 24, 2);

    ASSERT_FALSE(layout);
    EXPECT_NE(layout.error().what.find("page_size 24 is not a multiple of the compression ratio 16 of layer 2"),
              std::string::npos);
}

TEST(Sequence, OwnsExactlyThePagesThatSpecArithmeticGives) {
    EXPECT_TRUE(rc::check([] {
        const PoolLayout layout = small_layout();
        const auto pools = Pools::create(layout, {.token_pages = 64, .window_pages = 64, .state_slots = 2}).take();
        Sequence seq = Sequence::open(*pools).value();
        std::int32_t n = 0;
        for (int step = 0; step < 12; ++step) {
            const std::int32_t q = *rc::gen::inRange(1, 60);
            const std::int32_t before = (n + 15) / 16;
            const std::int32_t after = (n + q + 15) / 16;
            RC_ASSERT(seq.need(n + q) == (PageNeed{after - before, after - before}));
            RC_ASSERT(seq.reserve(n + q));
            RC_ASSERT(seq.length() == n);
            RC_ASSERT(seq.window_table().num_owned() == layout.window_pages_of(n, n + q));
            seq.commit(n + q);
            n += q;
            for (std::int32_t p = 0; p < n; ++p) {
                const bool live = seq.window_pages()[static_cast<std::size_t>(p / 16)] != 0;
                // A page lives as long as one of its positions is in sight of the query at n.
                RC_ASSERT(live == ((p / 16 + 1) * 16 > n - 6 + 1));
                RC_ASSERT(seq.token_pages()[static_cast<std::size_t>(p / 16)] != 0);
            }
            RC_ASSERT(bool(pools->census(std::vector<const Sequence*>{&seq})));
        }
    }));
}

TEST(Sequence, FreesWindowPagesAsInTheSpecExample) {
    ModelGeometry g = small_geometry();
    g.window = 128;
    g.ratios = {0, 4, 128, 4};
    const auto pools =
        Pools::create(make_layout(g, 256, 2).take(), {.token_pages = 12, .window_pages = 12, .state_slots = 2}).take();
    Sequence seq = Sequence::open(*pools).value();
    ASSERT_TRUE(seq.reserve(2049));

    seq.commit(2049);

    EXPECT_EQ(seq.window_table().num_owned(), 9 - 1792 / 256);
}

TEST(Sequence, ReservesInBothGroupsOrInNone) {
    const auto pools = Pools::create(small_layout(), {.token_pages = 9, .window_pages = 3, .state_slots = 2}).take();
    Sequence seq = Sequence::open(*pools).value();

    EXPECT_FALSE(seq.reserve(33));
    EXPECT_EQ(pools->token_pages().num_held(), 0);
    EXPECT_TRUE(seq.reserve(32));
    EXPECT_EQ(pools->token_pages().num_held(), 2);
    EXPECT_EQ(pools->window_pages().num_held(), 2);
}

TEST(Sequence, GivesAllBackWhenItEnds) {
    const auto pools = Pools::create(small_layout(), {.token_pages = 9, .window_pages = 9, .state_slots = 2}).take();
    {
        Sequence seq = Sequence::open(*pools).value();
        ASSERT_TRUE(seq.reserve(100));
        seq.commit(100);
        EXPECT_FALSE(Sequence::open(*pools).has_value());  // the only slot is taken
    }

    EXPECT_TRUE(pools->census({}));
    EXPECT_TRUE(Sequence::open(*pools).has_value());
}

TEST(Sequence, TheDummyLivesOnReservedPagesOnly) {
    const auto pools = Pools::create(small_layout(), {.token_pages = 2, .window_pages = 2, .state_slots = 1}).take();

    const Sequence dummy = Sequence::dummy(*pools);

    EXPECT_EQ(dummy.state_slot(), 0);
    EXPECT_EQ(dummy.token_pages()[0], 0);
    EXPECT_EQ(dummy.window_pages()[0], 0);
    EXPECT_TRUE(pools->census(std::vector<const Sequence*>{&dummy}));
}

TEST(Pools, FindTheRowOfAPositionThroughTheTables) {
    const auto pools = Pools::create(small_layout(), {.token_pages = 9, .window_pages = 9, .state_slots = 3}).take();
    Sequence other = Sequence::open(*pools).value();
    ASSERT_TRUE(other.reserve(16));
    Sequence seq = Sequence::open(*pools).value();
    ASSERT_TRUE(seq.reserve(40));

    EXPECT_EQ(pools->window_row(1, seq, 37), pools->window_row(1, seq.window_pages()[2], 5));
    EXPECT_EQ(pools->entry_row(1, seq, 6), pools->entry_row(1, seq.token_pages()[1], 2));
    EXPECT_EQ(pools->entry_row(2, seq, 1), pools->entry_row(2, seq.token_pages()[1], 0));
    EXPECT_EQ(pools->index_row(3, seq, 9), pools->index_row(3, seq.token_pages()[2], 1));
    EXPECT_EQ(pools->state_row(1, StateKind::kAttention, seq, 11),
              pools->state(1, StateKind::kAttention, seq.state_slot()) + 3 * 40);
    EXPECT_EQ(pools->state_row(1, StateKind::kIndexer, seq, 11),
              pools->state(1, StateKind::kIndexer, seq.state_slot()) + 3 * 24);
    EXPECT_EQ(pools->state_row(2, StateKind::kAttention, seq, 37),
              pools->state(2, StateKind::kAttention, seq.state_slot()) + 5 * 20);
}

TEST(PoolPlan, NeverExceedsItsBudgetAndUsesItUp) {
    EXPECT_TRUE(rc::check([] {
        const PoolLayout layout = small_layout();
        PoolDemand demand{.max_running = *rc::gen::inRange(1, 40),
                          .context_length = *rc::gen::inRange(1, 5000),
                          .chunk_tokens = *rc::gen::inRange(1, 600)};
        demand.budget_bytes = *rc::gen::inRange<std::int64_t>(0, 40'000'000);
        const auto plan = plan_pools(layout, demand);
        if (!plan) {
            RC_ASSERT(plan.error().code == Errc::kResourceExhausted);
            return;
        }
        const PoolSizes& sizes = plan.value().sizes;
        RC_ASSERT(plan.value().total_bytes() <= demand.budget_bytes);
        RC_ASSERT(sizes.window_pages <= sizes.token_pages);
        RC_ASSERT(sizes.state_slots == demand.max_running + 1);
        const std::int64_t most = demand.max_running * std::int64_t{layout.pages_of(demand.context_length)} + 1;
        const std::int64_t one_more = layout.token_page_bytes + layout.window_page_bytes;
        RC_ASSERT(sizes.token_pages == most || plan.value().total_bytes() + one_more > demand.budget_bytes);
    }));
}

TEST(PoolPlan, TakesAGivenNumberOfTokensAsItIs) {
    const auto plan = plan_pools(
        small_layout(), {.max_running = 4, .context_length = 4096, .chunk_tokens = 64, .max_total_tokens = 1000});

    EXPECT_EQ(plan.value().sizes.token_pages, 63 + 1);
    EXPECT_EQ(plan.value().token_capacity, 63 * 16);
    EXPECT_EQ(plan.value().sizes.window_pages, 4 * 2 + 64 / 16 + 1);
}

TEST(PoolPlan, NamesWhatIsMissing) {
    const auto plan = plan_pools(small_layout(), {.max_running = 4, .context_length = 4096, .budget_bytes = 100});

    ASSERT_FALSE(plan);
    EXPECT_NE(plan.error().what.find("but gets 100 bytes"), std::string::npos) << plan.error().what;
}

}  // namespace
}  // namespace megamoe::kv
