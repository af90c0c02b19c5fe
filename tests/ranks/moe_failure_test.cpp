// What the MoE operator does when a rank or a configuration is at fault: everybody gets an error that says which, and
// nobody waits for ever.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "moe_testing.h"

namespace megamoe::moe {
namespace {

constexpr std::int32_t kHidden = 128;
constexpr std::int32_t kRows = 4;

OperatorConfig config_of(Profile profile = Profile::kDs) {
    return {.math = {.isa = cpu::detect_isa(), .profile = profile, .hidden = kHidden, .inter = 128, .limit = 10},
            .num_experts = 8,
            .top_k = 2,
            .max_rows = kRows};
}

const LayerExperts& experts() {
    return testing::experts_of(ops::WeightFormat::kFp4, kHidden, 128);
}

// Rows that choose experts in turn, so that every rank needs every other.
struct Rows {
    explicit Rows(std::int32_t count, std::uint32_t seed = 1)
        : x(cpu::random_floats(std::int64_t{count} * kHidden, seed, true)), out(x.size()) {
        for (std::int32_t i = 0; i < 2 * count; ++i) {
            ids.push_back(i % 8);
            weights.push_back(0.5F);
        }
    }
    Input input() const {
        return {.x = x.data(),
                .expert_id = ids.data(),
                .weight = weights.data(),
                .rows = static_cast<std::int32_t>(ids.size() / 2)};
    }
    std::vector<float> x;
    std::vector<std::int32_t> ids;
    std::vector<float> weights;
    std::vector<float> out;
};

class MoeFailure : public ::testing::TestWithParam<MoeBackend> {
  protected:
    using RankTest = std::function<Result<Done>(const comm::RankContext&, Operator&, Workers&)>;

    // Runs `test` on every rank with an operator made with `options`.
    void on_ranks(std::int32_t num_ranks, const MegaOptions& options, const RankTest& test) {
        comm::RankGroup group(num_ranks, {.timeout_ms = 500});
        comm::SymmetricHeap heap;
        const auto ran = comm::run_ranks(group, heap, [&](const comm::RankContext& context) -> Result<Done> {
            Workers workers(1);
            MM_TRY(const auto op, make_operator(GetParam(), config_of(), context, workers, options));
            return test(context, *op, workers);
        });
        failure_ = ran ? "" : to_string(ran.error());
    }
    static Result<Done> call(Operator& op, const comm::RankContext& context, Rows& rows) {
        return op.forward(rows.input(), experts(),
                          testing::plan_of(std::vector(static_cast<std::size_t>(context.size), kRows)),
                          rows.out.data());
    }
    bool fused() const { return GetParam() == MoeBackend::kMegaMoe1 || GetParam() == MoeBackend::kMegaMoe2; }

    std::string failure_;
};

TEST_P(MoeFailure, ARankThatNeverCallsIsNamedByEverySurvivorAndLaterCallsFailAtOnce) {
    constexpr std::int32_t kRanks = 4;
    constexpr std::int32_t kKilled = 2;
    std::vector<std::string> first(kRanks);
    std::vector<std::string> later(kRanks);
    std::atomic<int> stages{0};
    const MegaOptions options{.timeout_ms = 400, .first_epoch = 0xFFFFFFFEU, .delay = [&](Edge edge) {
                                  stages += edge == Edge::kStage ? 1 : 0;
                              }};

    on_ranks(kRanks, options, [&](const comm::RankContext& context, Operator& op, Workers&) -> Result<Done> {
        Rows rows(kRows);
        for (int good = 0; good < 3; ++good) {
            MM_TRY_DONE(call(op, context, rows));
        }
        MM_TRY_DONE(op.status());
        MM_TRY_DONE(context.barrier("test.together"));
        const auto me = static_cast<std::size_t>(raw(context.rank));
        if (raw(context.rank) == kKilled) {
            return Done{};
        }
        const auto lost = call(op, context, rows);
        const auto again = call(op, context, rows);
        first[me] = lost ? "no error" : to_string(lost.error());
        later[me] = again ? "no error" : to_string(again.error());
        EXPECT_FALSE(op.status());
        EXPECT_TRUE(lost || lost.error().code == Errc::kUnavailable);
        EXPECT_TRUE(again || again.error().code == Errc::kUnavailable);
        return Done{};
    });

    EXPECT_NE(failure_, "");
    for (const std::int32_t survivor : {0, 1, 3}) {
        const auto& said = first[static_cast<std::size_t>(survivor)];
        EXPECT_NE(said.find("rank 2"), std::string::npos) << "rank " << survivor << ": " << said;
        EXPECT_EQ(said.find("rank 1 is missing"), std::string::npos) << said;
        EXPECT_NE(later[static_cast<std::size_t>(survivor)].find("failed before"), std::string::npos)
            << later[static_cast<std::size_t>(survivor)];
    }
    if (fused()) {
        EXPECT_NE(first[0].find("row counts from rank 2"), std::string::npos) << first[0];
        EXPECT_EQ(stages, 3 * kRanks + 3) << "a call on a failed operator touched the heap";
    }
}

TEST_P(MoeFailure, MoreRowsThanTheOperatorTakesAreRefusedBeforeAnythingIsPublished) {
    constexpr std::int32_t kRanks = 2;
    std::vector<Result<Done>> got(kRanks, Done{});
    std::atomic<int> stages{0};
    std::atomic<bool> other_is_here{false};
    const MegaOptions options{
        .timeout_ms = 60000, .first_epoch = 1, .delay = [&](Edge edge) { stages += edge == Edge::kStage ? 1 : 0; }};

    on_ranks(kRanks, options, [&](const comm::RankContext& context, Operator& op, Workers&) -> Result<Done> {
        const auto me = static_cast<std::size_t>(raw(context.rank));
        Rows rows(me == 1 ? kRows + 1 : kRows);
        if (me == 0) {
            other_is_here = true;
        }
        while (!other_is_here) {
            std::this_thread::yield();
        }
        got[me] = call(op, context, rows);
        return Done{};
    });

    const std::string text = "rank 1 brings 5 rows to the MoE operator, which takes 0..4 (MTPR) a step";
    ASSERT_FALSE(got[1]);
    EXPECT_EQ(got[1].error().code, Errc::kInvalidArgument);
    EXPECT_EQ(got[1].error().what, text);
    EXPECT_NE(got[1].error().hint.find("max_rows of at least 5"), std::string::npos);
    ASSERT_FALSE(got[0]);
    EXPECT_EQ(got[0].error().code, Errc::kUnavailable);
    EXPECT_NE(got[0].error().what.find(text), std::string::npos) << got[0].error().what;
    EXPECT_LE(stages, 1);
}

TEST_P(MoeFailure, NaNInADummyRowReachesNoOtherRow) {
    constexpr std::int32_t kRanks = 4;
    std::vector<std::vector<float>> clean(kRanks);
    for (const bool poisoned : {false, true}) {
        on_ranks(kRanks, {}, [&](const comm::RankContext& context, Operator& op, Workers&) -> Result<Done> {
            const auto me = static_cast<std::size_t>(raw(context.rank));
            Rows rows(kRows, static_cast<std::uint32_t>(me));
            const std::size_t dummies = me == 1 ? kRows : 1;  // rank 1 idles; the others pad their last row
            const std::size_t real = (kRows - dummies) * kHidden;
            std::fill(rows.x.begin() + static_cast<std::ptrdiff_t>(real), rows.x.end(),
                      poisoned ? std::numeric_limits<float>::quiet_NaN() : 0.0F);
            for (int i = 0; i < 3; ++i) {
                MM_TRY_DONE(call(op, context, rows));
            }
            rows.out.resize(real);
            if (!poisoned) {
                clean[me] = rows.out;
            }
            EXPECT_EQ(std::memcmp(rows.out.data(), clean[me].data(), real * sizeof(float)), 0) << "rank " << me;
            return Done{};
        });
        ASSERT_EQ(failure_, "");
    }
}

TEST_P(MoeFailure, ARankWithoutRowsStillServesItsExperts) {
    on_ranks(2, {}, [&](const comm::RankContext& context, Operator& op, Workers& workers) -> Result<Done> {
        Rows rows(kRows);
        comm::RankGroup solo(1);
        comm::SymmetricHeap heap;
        const comm::RankContext alone{.rank = RankId{0}, .size = 1, .group = solo, .heap = heap};
        MM_TRY(const auto reference, make_operator(MoeBackend::kReference, config_of(), alone, workers));
        Rows want(kRows);
        MM_TRY_DONE(call(*reference, alone, want));
        for (std::int32_t busy = 0; busy < 2; ++busy) {
            const bool mine = raw(context.rank) == busy;
            MM_TRY_DONE(op.forward(mine ? rows.input() : Input{}, experts(),
                                   testing::plan_of({busy == 0 ? kRows : 0, busy == 1 ? kRows : 0}),
                                   mine ? rows.out.data() : nullptr));
        }
        EXPECT_EQ(rows.out, want.out);
        return Done{};
    });
    EXPECT_EQ(failure_, "");
}

TEST_P(MoeFailure, RanksThatDifferAreToldInWhat) {
    struct Difference {
        std::string text;
        std::function<void(OperatorConfig&, MegaOptions&)> apply;
    };
    const std::vector<Difference> differences{
        {"hidden size is 128 on rank 0 and 256 on rank 1", [](auto& c, auto&) { c.math.hidden = 256; }},
        {"expert width is 128 on rank 0 and 384 on rank 1", [](auto& c, auto&) { c.math.inter = 384; }},
        {"experts is 8 on rank 0 and 16 on rank 1", [](auto& c, auto&) { c.num_experts = 16; }},
        {"top_k is 2 on rank 0 and 3 on rank 1", [](auto& c, auto&) { c.top_k = 3; }},
        {"rows a step (MTPR) is 4 on rank 0 and 8 on rank 1", [](auto& c, auto&) { c.max_rows = 8; }},
        {"clamp limit is 10 on rank 0 and 7 on rank 1", [](auto& c, auto&) { c.math.limit = 7; }},
        {"first launch is 1 on rank 0 and 2 on rank 1", [](auto&, auto& o) { o.first_epoch = 2; }},
    };
    for (const Difference& difference : differences) {
        comm::RankGroup group(2);
        comm::SymmetricHeap heap;
        std::vector<std::string> said(2);
        const auto ran = comm::run_ranks(group, heap, [&](const comm::RankContext& context) -> Result<Done> {
            Workers workers(1);
            OperatorConfig config = config_of();
            MegaOptions options;
            if (raw(context.rank) == 1) {
                difference.apply(config, options);
            }
            const auto made = make_operator(GetParam(), config, context, workers, options);
            said[static_cast<std::size_t>(raw(context.rank))] = made ? "no error" : made.error().what;
            return Done{};
        });
        EXPECT_TRUE(ran);
        EXPECT_EQ(said[0], "MoE operator: " + difference.text);
        EXPECT_EQ(said[1], said[0]);
    }
}

TEST_P(MoeFailure, SizesThatMakeNoSenseAreRefusedByName) {
    const auto refusal = [&](std::int32_t top_k, std::int32_t max_rows, std::uint32_t first_epoch) {
        comm::RankGroup group(1);
        comm::SymmetricHeap heap;
        const comm::RankContext alone{.rank = RankId{0}, .size = 1, .group = group, .heap = heap};
        Workers workers(1);
        OperatorConfig config = config_of();
        config.top_k = top_k;
        config.max_rows = max_rows;
        const auto made = make_operator(GetParam(), config, alone, workers,
                                        {.timeout_ms = 1, .first_epoch = first_epoch, .delay = {}});
        return made ? "no error" : made.error().what;
    };
    EXPECT_EQ(refusal(0, 4, 1), "top_k is 0, must be in 1..8 (the experts)");
    EXPECT_EQ(refusal(9, 4, 1), "top_k is 9, must be in 1..8 (the experts)");
    EXPECT_EQ(refusal(2, 0, 1), "rows a step (MTPR) is 0, must be at least 1");
    EXPECT_NE(refusal(8, 1 << 30, 1).find("more than fits 31 bits"), std::string::npos);
    EXPECT_NE(refusal(2, 4, 0).find("the first launch has number 0"), std::string::npos);
}

std::string name_of(const ::testing::TestParamInfo<MoeBackend>& info) {
    return std::array{"reference", "standard", "mega1", "mega2"}[static_cast<std::size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Backends, MoeFailure,
                         ::testing::Values(MoeBackend::kReference, MoeBackend::kStandard, MoeBackend::kMegaMoe1,
                                           MoeBackend::kMegaMoe2),
                         name_of);

class FusedFailure : public MoeFailure {};

TEST_P(FusedFailure, ARankThatStopsInsideALaunchIsNamedByEverySurvivor) {
    constexpr std::int32_t kRanks = 4;
    constexpr std::int32_t kStuck = 1;
    thread_local bool stuck_rank = false;
    std::atomic<int> gave_up{0};
    std::vector<std::string> said(kRanks);
    const MegaOptions options{.timeout_ms = 300, .first_epoch = 1, .delay = [&](Edge edge) {
                                  while (stuck_rank && edge == Edge::kReturn && gave_up < kRanks - 1) {
                                      std::this_thread::yield();
                                  }
                              }};

    on_ranks(kRanks, options, [&](const comm::RankContext& context, Operator& op, Workers&) -> Result<Done> {
        Rows rows(kRows);
        stuck_rank = raw(context.rank) == kStuck;
        MM_TRY_DONE(context.barrier("test.together"));
        const auto done = call(op, context, rows);
        if (!stuck_rank) {
            said[static_cast<std::size_t>(raw(context.rank))] = done ? "no error" : to_string(done.error());
            ++gave_up;
        }
        return Done{};
    });

    for (const std::size_t survivor : {0U, 2U, 3U}) {
        EXPECT_NE(said[survivor].find("returned rows from rank 1"), std::string::npos) << said[survivor];
    }
}

INSTANTIATE_TEST_SUITE_P(Backends, FusedFailure, ::testing::Values(MoeBackend::kMegaMoe1, MoeBackend::kMegaMoe2),
                         name_of);

}  // namespace
}  // namespace megamoe::moe
