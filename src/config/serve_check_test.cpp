#include "config/serve_check.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace megamoe {
namespace {

ModelGeometry model() {
    ModelGeometry geometry;
    geometry.num_experts = 32;
    geometry.max_positions = 4096;
    geometry.ratios = {0, 4, 128};
    return geometry;
}

constexpr MachineFacts kMachine{.cores = 8, .file_limit = 1 << 20};

struct Checked {
    ServeOptions options;
    std::vector<Finding> notes;
    std::vector<Finding> problems;
};

Checked check(ServeOptions options, const MachineFacts& machine = kMachine) {
    Checked checked{std::move(options), {}, {}};
    derive_options(checked.options, model(), machine, checked.notes);
    checked.problems = check_options(checked.options, model(), machine);
    return checked;
}

ServeOptions sized(std::int32_t tp, std::int32_t dp, std::int32_t ep, bool dp_attention) {
    ServeOptions options;
    options.tp_size = tp;
    options.dp_size = dp;
    options.ep_size = ep;
    options.enable_dp_attention = dp_attention;
    return options;
}

std::string only_problem(const Checked& checked) {
    EXPECT_EQ(checked.problems.size(), 1U);
    return checked.problems.empty() ? "" : to_string(checked.problems.front());
}

TEST(ServeCheck, TheDefaultsStart) {
    const Checked checked = check({});

    EXPECT_TRUE(checked.problems.empty());
    EXPECT_TRUE(checked.notes.empty());
    EXPECT_EQ(checked.options.engine.num_ranks, 1);
    EXPECT_EQ(checked.options.engine.threads_per_rank, 8);
    EXPECT_EQ(checked.options.engine.context_length, 4096);
}

TEST(ServeCheck, TheReferenceGeometryStarts) {
    const Checked checked = check(sized(8, 8, 8, true));

    EXPECT_TRUE(checked.problems.empty());
    EXPECT_EQ(checked.options.engine.num_ranks, 8);
    EXPECT_EQ(checked.options.engine.threads_per_rank, 1);
}

TEST(ServeCheck, ExpertRanksAloneSetAllThreeSizesAndSaySo) {
    ServeOptions options;
    options.ep_size = 4;

    const Checked checked = check(options);

    EXPECT_TRUE(checked.problems.empty());
    ASSERT_EQ(checked.notes.size(), 1U);
    EXPECT_EQ(checked.options.tp_size, 4);
    EXPECT_EQ(checked.options.dp_size, 4);
    EXPECT_EQ(checked.options.enable_dp_attention, true);
    EXPECT_EQ(checked.options.origins.at("tp-size"), Origin::kDerived);
}

TEST(ServeCheck, TensorParallelAttentionIsRefusedAndNotReinterpreted) {
    ServeOptions options;
    options.tp_size = 4;

    const std::string problem = only_problem(check(options));

    EXPECT_NE(problem.find("attention would be split over tp / dp = 4 ranks"), std::string::npos) << problem;
    EXPECT_NE(problem.find("--tp-size 4 --dp-size 4 --ep-size 4 --enable-dp-attention"), std::string::npos) << problem;
}

TEST(ServeCheck, DataParallelWithoutDpAttentionIsRefused) {
    EXPECT_NE(only_problem(check(sized(2, 2, 2, false))).find("add --enable-dp-attention"), std::string::npos);
}

TEST(ServeCheck, ExpertsOnSomeOfTheRanksAreRefused) {
    EXPECT_NE(only_problem(check(sized(4, 4, 2, true))).find("over all 4 ranks, not over 2"), std::string::npos);
}

TEST(ServeCheck, RanksThatDoNotDivideTheExpertsAreRefusedWithThoseThatDo) {
    EXPECT_NE(only_problem(check(sized(3, 3, 3, true))).find("use one of 1, 2, 4, 8, 16, 32"), std::string::npos);
}

TEST(ServeCheck, MoreThreadsThanCoresIsAWarning) {
    const Checked checked = check(sized(16, 16, 16, true));

    ASSERT_EQ(checked.problems.size(), 1U);
    EXPECT_EQ(checked.problems.front().severity, Severity::kWarn);
    EXPECT_FALSE(refuses(checked.problems));
}

TEST(ServeCheck, APageHoldsWholeCompressedEntries) {
    ServeOptions options;
    options.engine.page_size = 64;

    EXPECT_NE(only_problem(check(options)).find("compresses 128 tokens into one"), std::string::npos);
}

TEST(ServeCheck, AChunkIsBoundedAndReachesEveryRank) {
    ServeOptions unbounded;
    unbounded.engine.chunked_prefill_size = -1;
    ServeOptions small = sized(8, 8, 8, true);
    small.engine.chunked_prefill_size = 7;

    EXPECT_EQ(only_problem(check(unbounded)).substr(0, 6), "CFG-08");
    EXPECT_EQ(only_problem(check(small)).substr(0, 6), "CFG-13");
}

TEST(ServeCheck, ALongerContextThanTheModelsIsRefused) {
    ServeOptions options;
    options.engine.context_length = 4097;

    EXPECT_EQ(only_problem(check(options)).substr(0, 6), "CFG-42");
}

TEST(ServeCheck, TooFewFileDescriptorsAreRefusedWithTheNumberNeeded) {
    EXPECT_NE(only_problem(check({}, {.cores = 8, .file_limit = 1024})).find("ulimit -n 2048"), std::string::npos);
}

TEST(ServeCheck, BackendAndVersionChooseTheOperator) {
    ServeOptions options;
    options.moe_a2a_backend = "megamoe";
    EXPECT_EQ(check(options).options.engine.moe_backend, MoeBackend::kMegaMoe2);

    options.megamoe_version = 1;
    EXPECT_EQ(check(options).options.engine.moe_backend, MoeBackend::kMegaMoe1);

    options.moe_a2a_backend = "reference";
    EXPECT_EQ(check(options).options.engine.moe_backend, MoeBackend::kReference);
}

TEST(ServeCheck, AVersionOfTheFusedOperatorWithoutItIsNoted) {
    ServeOptions options;
    options.megamoe_version = 1;
    options.origins["megamoe-version"] = Origin::kFlag;

    ASSERT_EQ(check(options).notes.size(), 1U);
    EXPECT_EQ(check(options).notes.front().id, "CFG-45");
}

TEST(ServeCheck, EveryProblemIsReportedAtOnce) {
    ServeOptions options = sized(3, 3, 1, true);
    options.engine.page_size = 3;
    options.engine.chunked_prefill_size = 0;
    options.engine.context_length = 1 << 20;

    EXPECT_EQ(check(options).problems.size(), 5U);
}

TEST(ServeCheck, TheServedNameIsTheLastPartOfThePath) {
    ServeOptions options;
    options.model_path = "models/mini/";

    EXPECT_EQ(check(options).options.served_model_name, "mini");
}

TEST(ServeCheck, EveryRankGetsTheSameShareAndTheTotalIsWhatRuns) {
    EXPECT_TRUE(rc::check([] {
        const auto ranks = *rc::gen::element(1, 2, 4, 8);
        ServeOptions options = sized(ranks, ranks, ranks, true);
        options.engine.max_running_requests = *rc::gen::inRange(1, 3000);

        const Checked checked = check(options);

        const EngineConfig& engine = checked.options.engine;
        RC_ASSERT(engine.max_running_requests % ranks == 0);
        RC_ASSERT(rank_share(engine).running_requests * ranks == engine.max_running_requests);
        RC_ASSERT((engine.max_running_requests == options.engine.max_running_requests) == checked.notes.empty());
    }));
}

}  // namespace
}  // namespace megamoe
