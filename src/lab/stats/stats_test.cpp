#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lab/core/rng.h"
#include "lab/stats/compare.h"
#include "lab/stats/distribution.h"
#include "lab/stats/inflight.h"
#include "lab/stats/request_metrics.h"
#include "lab/stats/run_metrics.h"
#include "lab/stats/student_t.h"

namespace megamoe::lab {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// The reader's base: 0 means "did not happen", so the vectors' time 0 lies here.
constexpr std::int64_t kBase = 1'000'000'000;

std::int64_t at(double ms) {
    return kBase + static_cast<std::int64_t>(ms * kMs);
}

RequestRecord vector_t1() {
    RequestRecord r;
    r.asked_in = 4;
    r.asked_out = 8;
    r.outcome = Outcome::kOk;
    r.t_sched = at(0);
    r.t_slot = at(100);
    r.t_start = at(101);
    r.t_role = at(180);
    r.t_first = at(300);
    r.t_last = at(420);
    r.t_end = at(430);
    r.chunks = {{at(300), 1, 1}, {at(340), 4, 3}, {at(420), 8, 4}};
    r.prompt_tokens = 4;
    r.completion_tokens = 8;
    return r;
}

TEST(GoldenVectors, T1TokensComeInChunksOfSeveral) {
    const RequestMetrics m = request_metrics(vector_t1());

    EXPECT_DOUBLE_EQ(*m.ttft, 199);
    EXPECT_DOUBLE_EQ(*m.ttft_user, 300);
    EXPECT_DOUBLE_EQ(*m.queue, 100);
    EXPECT_DOUBLE_EQ(*m.e2el, 319);
    EXPECT_NEAR(*m.tpot, 17.142857, 1e-6);
    EXPECT_NEAR(*m.tpot_strict, 17.142857, 1e-6);
    EXPECT_DOUBLE_EQ(*m.merge, 3.5);
    EXPECT_FALSE(m.conn);
    EXPECT_EQ(m.basis, ItlBasis::kCounted);

    const Distribution icl{std::span<const double>(m.icl)};
    EXPECT_EQ(m.icl, (std::vector<double>{40, 80}));
    EXPECT_DOUBLE_EQ(icl.quantile(0.5), 60);
    EXPECT_NEAR(icl.quantile(0.99), 79.6, 1e-9);

    const Distribution itl(m.itl);
    EXPECT_EQ(itl.count(), 7U);
    EXPECT_NEAR(m.itl[0].value, 13.333333, 1e-6);
    EXPECT_EQ(m.itl[0].weight, 3U);
    EXPECT_EQ(m.itl[1], (WeightedValue{20, 4}));
    EXPECT_NEAR(itl.mean(), 17.142857, 1e-6);
    EXPECT_DOUBLE_EQ(itl.quantile(0.5), 20);
}

TEST(GoldenVectors, T2PercentilesAreLinearBetweenOrderStatistics) {
    const std::vector<double> values{40, 10, 30, 20};
    const Distribution d{std::span<const double>(values)};

    EXPECT_DOUBLE_EQ(d.quantile(0.25), 17.5);
    EXPECT_DOUBLE_EQ(d.quantile(0.5), 25);
    EXPECT_DOUBLE_EQ(d.quantile(0.9), 37);
    EXPECT_NEAR(d.quantile(0.99), 39.7, 1e-9);
    const std::vector<double> percents{90, 99};
    EXPECT_DOUBLE_EQ(*d.summarize(percents).at(90), 37);
    EXPECT_FALSE(d.summarize(percents).at(99));  // four values cannot carry a P99
}

TEST(GoldenVectors, T3AOneTokenAnswerHasNoTpotButCounts) {
    RequestRecord r = vector_t1();
    r.asked_out = 1;
    r.completion_tokens = 1;
    r.chunks.resize(1);
    r.t_last = r.t_first;

    const RequestMetrics m = request_metrics(r);
    const RunMetrics run = run_metrics(std::span(&r, 1), {});

    EXPECT_FALSE(m.tpot);
    EXPECT_TRUE(m.itl.empty());
    EXPECT_EQ(run.out_tokens, 1U);
    EXPECT_EQ(run.latency_ms.tpot.count, 0U);
    EXPECT_FALSE(run.latency_ms.tpot.mean);
}

TEST(GoldenVectors, T4AFirstChunkOfSeveralTokensSeparatesTheTwoTpots) {
    RequestRecord r = vector_t1();
    r.t_first = at(100);
    r.t_last = at(180);
    r.chunks = {{at(100), 4, 4}, {at(180), 8, 4}};

    const RequestMetrics m = request_metrics(r);

    EXPECT_DOUBLE_EQ(*m.tpot, 80.0 / 7);
    EXPECT_DOUBLE_EQ(*m.tpot_strict, 20);
}

TEST(GoldenVectors, T5ADepartureComesBeforeAnArrivalAtTheSameTime) {
    RequestRecord a = vector_t1();
    a.t_start = at(0);
    a.t_first = a.t_last = at(10);
    a.chunks = {{at(10), 8, 1}};
    RequestRecord b = a;
    b.t_start = at(10);
    b.t_first = b.t_last = at(20);
    b.chunks = {{at(20), 8, 1}};
    const std::vector<RequestRecord> records{a, b};

    const RunMetrics run = run_metrics(records, {});

    EXPECT_EQ(run.peak_concurrency, 1);
    EXPECT_DOUBLE_EQ(run.mean_concurrency, 1.0);
}

TEST(RequestMetrics, ItlIdentityHoldsForAnyStream) {
    EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& steps) {
        RC_PRE(steps.size() >= 2U);
        RequestRecord r = vector_t1();
        r.chunks.clear();
        std::uint32_t tokens = 0;
        std::int64_t t = at(0);
        for (const std::uint8_t step : steps) {
            tokens += 1 + step % 5;
            t += 1 + step * kMs;
            r.chunks.push_back({t, tokens, 1});
        }
        r.completion_tokens = tokens;
        r.t_first = r.chunks.front().t_ns;
        r.t_last = t;

        const RequestMetrics m = request_metrics(r);

        const double tolerance = 1e-9 * (1 + *m.tpot_strict * *m.merge);
        RC_ASSERT(std::abs(Distribution(m.itl).mean() - *m.tpot_strict) <= tolerance);
        RC_ASSERT(std::abs(Distribution(std::span<const double>(m.icl)).mean() - *m.merge * *m.tpot_strict) <=
                  tolerance);
    }));
}

TEST(RequestMetrics, UncountedChunksOfSeveralTokensHaveNoItl) {
    RequestRecord r = vector_t1();
    for (Chunk& chunk : r.chunks) {
        chunk.tokens_so_far = 0;
    }

    const RequestMetrics m = request_metrics(r);

    EXPECT_EQ(m.basis, ItlBasis::kUnknown);
    EXPECT_TRUE(m.itl.empty());
    EXPECT_FALSE(m.tpot_strict);
    EXPECT_EQ(m.icl.size(), 2U);
    EXPECT_NEAR(*m.tpot, 17.142857, 1e-6);
}

TEST(Distribution, WeightsEqualRepeatedValues) {
    EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::int16_t, std::uint8_t>>& input, std::uint16_t where) {
        std::vector<WeightedValue> weighted;
        std::vector<double> expanded;
        for (const auto& [value, weight] : input) {
            weighted.push_back({static_cast<double>(value), weight});
            expanded.insert(expanded.end(), weight, value);
        }
        RC_PRE(!expanded.empty());
        std::sort(expanded.begin(), expanded.end());
        const double fraction = where / 65535.0;
        const double h = static_cast<double>(expanded.size() - 1) * fraction;
        const auto k = static_cast<std::size_t>(h);
        const double next = expanded[std::min(k + 1, expanded.size() - 1)];

        const Distribution d(weighted);

        RC_ASSERT(d.count() == expanded.size());
        RC_ASSERT(std::abs(d.quantile(fraction) - (expanded[k] + (h - std::floor(h)) * (next - expanded[k]))) < 1e-9);
    }));
}

TEST(Distribution, AThousandValuesCarryAP999) {
    const std::vector<double> values(1000, 1.0);
    const std::vector<double> percents{99.9, 99.99};
    const Summary summary = Distribution(std::span<const double>(values)).summarize(percents);

    EXPECT_TRUE(summary.at(99.9));
    EXPECT_FALSE(summary.at(99.99));
}

TEST(Inflight, FindsTheLongestFullStretch) {
    const std::vector<Interval> intervals{{0, 100}, {10, 40}, {60, 95}, {5, 8}};
    const auto steps = inflight_steps(intervals);

    const Interval best = longest_at_least(steps, 2);

    EXPECT_EQ(best.begin_ns, 60);
    EXPECT_EQ(best.end_ns, 95);
    EXPECT_DOUBLE_EQ(mean_inflight(steps, {0, 100}), (100 + 30 + 35 + 3) / 100.0);
    EXPECT_DOUBLE_EQ(median_inflight(steps, {0, 100}), 2);
}

TEST(RunMetrics, FailuresCountButDoNotEnterLatencies) {
    std::vector<RequestRecord> records{vector_t1(), vector_t1(), vector_t1()};
    records[1].outcome = Outcome::kHttpError;
    records[2].measured = false;

    const RunMetrics run = run_metrics(records, {});

    EXPECT_EQ(run.ok, 1);
    EXPECT_EQ(run.failed, 1);
    EXPECT_EQ(run.by_outcome.at("http_error"), 1);
    EXPECT_EQ(run.latency_ms.ttft.count, 1U);
}

TEST(RunMetrics, ThroughputIsTokensOverTheMakespan) {
    std::vector<RequestRecord> records{vector_t1(), vector_t1()};
    records[1].t_start = at(401);
    records[1].t_last = records[1].chunks.back().t_ns = at(1101);

    const RunMetrics run = run_metrics(records, {});

    EXPECT_DOUBLE_EQ(run.duration_s, 1.0);
    EXPECT_DOUBLE_EQ(run.throughput->req_s, 2);
    EXPECT_DOUBLE_EQ(run.throughput->total_tok_s, 2 * (4 + 8));
    EXPECT_DOUBLE_EQ(run.throughput->total_tok_s, run.throughput->req_s * (4 + 8));
}

TEST(RunMetrics, WaveZeroIsTheFirstOfEachSlot) {
    std::vector<RequestRecord> records(5, vector_t1());
    for (std::size_t i = 0; i < records.size(); ++i) {
        records[i].index = static_cast<std::int64_t>(i);
    }

    const RunMetrics run = run_metrics(records, {.max_concurrency = 2});

    EXPECT_EQ(run.latency_ms.ttft_wave0.count, 2U);
    EXPECT_EQ(run.latency_ms.ttft_rest.count, 3U);
}

TEST(RunMetrics, SteadyStateOutlivesTheMomentBetweenTwoRequestsOfASlot) {
    // Two slots, three waves in lock step; 1 ms passes between the end of a request and the first byte of the next.
    std::vector<RequestRecord> records;
    for (int wave = 0; wave < 3; ++wave) {
        for (int slot = 0; slot < 2; ++slot) {
            RequestRecord& r = records.emplace_back(vector_t1());
            r.t_sched = at(100.0 * wave);
            r.t_start = at(100.0 * wave + 1);
            r.t_first = at(100.0 * wave + 50);
            r.t_last = r.t_end = at(100.0 * (wave + 1));
            r.chunks = {{r.t_first, 4, 1}, {r.t_last, 8, 1}};
        }
    }

    const RunMetrics run = run_metrics(records, {.max_concurrency = 2});

    ASSERT_TRUE(run.steady);
    EXPECT_NEAR(run.steady->fraction, 1.0, 1e-9);
    EXPECT_EQ(run.peak_concurrency, 2);
}

TEST(RunMetrics, GoodputNeedsAllLimits) {
    const std::vector<RequestRecord> records{vector_t1()};

    EXPECT_DOUBLE_EQ(*run_metrics(records, {.goodput = {{"ttft", 200}, {"tpot", 18}}}).goodput_fraction, 1);
    EXPECT_DOUBLE_EQ(*run_metrics(records, {.goodput = {{"ttft", 200}, {"tpot", 17}}}).goodput_fraction, 0);
    EXPECT_FALSE(run_metrics(records, {}).goodput_req_s);
}

TEST(GapMixture, SeparatesDecodeStepsFromPrefillStalls) {
    std::vector<double> gaps(94, 50.0);
    gaps.insert(gaps.end(), 6, 1200.0);

    const auto mixture = gap_mixture(gaps);

    ASSERT_TRUE(mixture);
    EXPECT_NEAR(mixture->stall_share, 0.06, 1e-12);
    EXPECT_DOUBLE_EQ(mixture->low_median_ms, 50);
    EXPECT_DOUBLE_EQ(mixture->stall_extra_ms, 1150);
    EXPECT_FALSE(gap_mixture(std::vector<double>(100, 5.0)));
}

TEST(StudentT, MatchesTheTables) {
    EXPECT_NEAR(student_t_critical(0.05, 1), 12.7062047, 1e-6);
    EXPECT_NEAR(student_t_critical(0.05, 2), 4.30265273, 1e-7);
    EXPECT_NEAR(student_t_critical(0.05, 10), 2.22813885, 1e-7);
    EXPECT_NEAR(student_t_critical(0.01, 5), 4.03214298, 1e-7);
    EXPECT_NEAR(student_t_two_sided(0, 3), 1, 1e-12);
}

TEST(CompareArms, OneClearDifferenceIsCalledBetter) {
    const std::vector<double> a{100, 101, 99};
    const std::vector<double> b{120, 121.5, 118.5};

    const Comparison c = compare_arms(a, b, {});

    EXPECT_EQ(c.verdict, Verdict::kBetter);
    EXPECT_NEAR(c.ratio, 1.2, 0.001);
    EXPECT_EQ(compare_arms(b, a, {}).verdict, Verdict::kWorse);
    EXPECT_EQ(compare_arms(a, b, {.higher_is_better = false}).verdict, Verdict::kWorse);
}

TEST(CompareArms, TwoPairsGiveNoVerdictHoweverClear) {
    const std::vector<double> a{100, 101};
    const std::vector<double> b{200, 201};

    const Comparison c = compare_arms(a, b, {});

    EXPECT_EQ(c.verdict, Verdict::kTooFewRuns);
    EXPECT_NE(explain(c, "a", "b", "throughput", {}).find("No verdict possible"), std::string::npos);
}

TEST(CompareArms, EqualArmsAreEquivalentAndNoisyOnesInconclusive) {
    EXPECT_EQ(compare_arms(std::vector{100.0, 100.1, 99.9}, std::vector{100.05, 100.0, 99.95}, {}).verdict,
              Verdict::kEquivalent);
    EXPECT_EQ(compare_arms(std::vector{100.0, 120.0, 90.0}, std::vector{105.0, 100.0, 111.0}, {}).verdict,
              Verdict::kInconclusive);
}

TEST(CompareArms, IsAntisymmetric) {
    EXPECT_TRUE(rc::check([](std::uint64_t seed) {
        Rng rng = Rng::stream(seed, "t", 0);
        std::vector<double> a(4);
        std::vector<double> b(4);
        for (std::size_t i = 0; i < a.size(); ++i) {
            a[i] = 100 * std::exp(0.02 * rng.normal());
            b[i] = 103 * std::exp(0.02 * rng.normal());
        }

        const Comparison forth = compare_arms(a, b, {});
        const Comparison back = compare_arms(b, a, {});

        RC_ASSERT(std::abs(forth.ratio * back.ratio - 1) < 1e-12);
        RC_ASSERT(std::abs(*forth.low * *back.high - 1) < 1e-9);
        RC_ASSERT((forth.verdict == Verdict::kBetter) == (back.verdict == Verdict::kWorse));
    }));
}

// The spec's promise for the harness: equal arms are rarely called different, true differences usually are.
TEST(CompareArms, FalseVerdictsAreRareAndTrueDifferencesAreFound) {
    const auto share_decided = [](double true_effect, double sd) {
        constexpr int kExperiments = 400;
        int decided = 0;
        for (int e = 0; e < kExperiments; ++e) {
            Rng rng = Rng::stream(static_cast<std::uint64_t>(e), "experiment", 0);
            std::vector<double> a(6);
            std::vector<double> b(6);
            for (std::size_t i = 0; i < a.size(); ++i) {
                a[i] = 100 * std::exp(sd * rng.normal());
                b[i] = 100 * (1 + true_effect) * std::exp(sd * rng.normal());
            }
            const Verdict verdict = compare_arms(a, b, {}).verdict;
            decided += verdict == Verdict::kBetter || verdict == Verdict::kWorse ? 1 : 0;
        }
        return static_cast<double>(decided) / kExperiments;
    };

    EXPECT_LE(share_decided(0, 0.005), 0.05);
    EXPECT_LE(share_decided(0, 0.02), 0.05);
    EXPECT_GE(share_decided(0.03, 0.005), 0.8);
}

}  // namespace
}  // namespace megamoe::lab
