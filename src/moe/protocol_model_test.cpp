#include "moe/protocol_model.h"

#include <gtest/gtest.h>

#include <numeric>

namespace megamoe::moe {
namespace {

// One row from everybody to every expert.
ProtocolModel full(std::int32_t num_ranks, std::int32_t local_experts, std::int32_t threads, std::int32_t launches) {
    ProtocolModel m;
    m.num_ranks = num_ranks;
    m.local_experts = local_experts;
    m.threads = threads;
    m.launches = launches;
    m.rows.assign(static_cast<std::size_t>(num_ranks * num_ranks * local_experts), 1);
    return m;
}

std::string story(const ModelVerdict& v) {
    return std::accumulate(v.trace.begin(), v.trace.end(), v.violation,
                           [](std::string all, const std::string& step) { return std::move(all) + "\n  " + step; });
}

void expect_correct(const ProtocolModel& m) {
    const ModelVerdict v = explore(m);
    EXPECT_TRUE(v.violation.empty()) << story(v);
    EXPECT_GT(v.states, 100);
    std::printf("ranks %d, experts a rank %d, threads %d, launches %d, banks %d: %lld states\n", m.num_ranks,
                m.local_experts, m.threads, m.launches, m.banks, static_cast<long long>(v.states));
}

TEST(ProtocolModel, TwoRanksWithTwoThreadsGoWrongInNoOrderOfSteps) {
    expect_correct(full(2, 1, 2, 2));
    expect_correct(full(2, 2, 2, 2));
}

TEST(ProtocolModel, TwoExpertsARankGoWrongInNoOrderOfSteps) {
    expect_correct(full(2, 2, 1, 2));
}

TEST(ProtocolModel, ThreeRanksGoWrongInNoOrderOfSteps) {
    expect_correct(full(3, 1, 1, 2));
}

TEST(ProtocolModel, ThreeLaunchesReuseABankAndGoWrongInNoOrderOfSteps) {
    expect_correct(full(2, 1, 2, 4));
    expect_correct(full(3, 1, 1, 3));
}

TEST(ProtocolModel, ARingOfTwoSlotsTakesFourBlocks) {
    ProtocolModel m = full(2, 1, 2, 2);
    m.rows = {2, 0, 2, 0};  // everything to rank 0
    expect_correct(m);
}

TEST(ProtocolModel, RanksWithoutRowsGoWrongInNoOrderOfSteps) {
    ProtocolModel m = full(3, 1, 1, 2);
    m.rows = {0, 0, 0, 1, 0, 0, 0, 0, 1};
    expect_correct(m);
    m.rows.assign(9, 0);
    expect_correct(m);
}

TEST(ProtocolModel, ThreadsThatEachReadTheCountsGoWrongInNoOrderOfSteps) {
    ProtocolModel m = full(2, 1, 2, 2);
    m.all_read_counts = true;
    expect_correct(m);
}

// What two banks are for: a peer may be one launch ahead while a thread here has not yet read this launch's counts.
TEST(ProtocolModel, OneBankDeadlocksThreadsThatEachReadTheCounts) {
    ProtocolModel m = full(2, 1, 2, 2);
    m.all_read_counts = true;
    m.banks = 1;

    const ModelVerdict v = explore(m);

    EXPECT_NE(v.violation.find("deadlock"), std::string::npos);
    EXPECT_FALSE(v.trace.empty());
}

// One reader a rank has read all counts before it says done to anybody: it would do with one bank.
TEST(ProtocolModel, OneBankIsEnoughForOneReaderARank) {
    ProtocolModel m = full(2, 1, 2, 3);
    m.banks = 1;
    expect_correct(m);
    m = full(3, 1, 1, 3);
    m.banks = 1;
    m.rows = {0, 0, 1, 1, 0, 0, 0, 0, 1};
    expect_correct(m);
}

TEST(ProtocolModel, ADoneWordBeforeTheRowsIsFound) {
    ProtocolModel m = full(2, 1, 1, 2);
    m.breach = Breach::kDoneBeforeRows;

    const ModelVerdict v = explore(m);

    EXPECT_NE(v.violation.find("stale result"), std::string::npos) << story(v);
    EXPECT_FALSE(v.trace.empty());
}

TEST(ProtocolModel, ACountBeforeItsListIsFound) {
    ProtocolModel m = full(2, 1, 1, 2);
    m.breach = Breach::kCountBeforeIndex;

    EXPECT_NE(explore(m).violation.find("stale index"), std::string::npos);
}

TEST(ProtocolModel, AWordOfAnOlderLaunchTakenForThisOnesIsFound) {
    ProtocolModel m = full(2, 1, 1, 3);
    m.breach = Breach::kAnyEpoch;

    EXPECT_NE(explore(m).violation.find("launch 3"), std::string::npos);
}

TEST(ProtocolModel, ARankThatLeavesBeforeItsRowsAreBackIsFound) {
    ProtocolModel m = full(2, 1, 1, 2);
    m.breach = Breach::kLeaveEarly;

    EXPECT_NE(explore(m).violation.find("stale result"), std::string::npos);
}

TEST(ProtocolModel, ARingOfOneSlotDeadlocksWithALag) {
    ProtocolModel m = full(2, 1, 1, 1);
    m.ring = 1;

    EXPECT_NE(explore(m).violation.find("deadlock"), std::string::npos);
}

}  // namespace
}  // namespace megamoe::moe
