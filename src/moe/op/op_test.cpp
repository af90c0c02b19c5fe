// Cases, routings, the oracle and the check itself.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>

#include "compute/ops/formats.h"
#include "moe/op/op_bench.h"
#include "moe/op/op_check.h"
#include "moe/op/op_oracle.h"
#include "moe/op/op_report.h"
#include "moe/op/op_run.h"

namespace megamoe::moe::op {
namespace {

using ops::WeightFormat;

Geometry tiny() {
    return find_geometry("tiny").value();
}

Routing routing(const std::string& text) {
    return parse_routing(text).value();
}

RawMatrix bf16_matrix(std::int32_t rows, std::int32_t cols, const std::vector<float>& values) {
    RawMatrix m{.format = WeightFormat::kBf16, .rows = rows, .cols = cols, .codes = {}, .scales = {}};
    for (const float v : values) {
        const std::uint16_t code = ops::to_bf16(v);
        m.codes.push_back(static_cast<std::uint8_t>(code));
        m.codes.push_back(static_cast<std::uint8_t>(code >> 8));
    }
    return m;
}

TEST(Oracle, GivesWhatThePaperAndPencilGive) {
    // x = (1, 2): exact in FP8. gate = 2, up = 1, silu(2) = 1.7616.
    // Routed, weight 0.5: 0.8808 -> bf16 225 / 256 -> FP8 (step 16 / 256) 224 / 256 = 0.875, times (1, -2).
    // Shared: 1.7616 -> bf16 225 / 128 -> 224 / 128 = 1.75, times (1, -2).
    const RawExpert expert{
        .w1 = bf16_matrix(1, 2, {1, 0.5}), .w3 = bf16_matrix(1, 2, {0.5, 0.25}), .w2 = bf16_matrix(2, 1, {1, -2})};
    const std::array<float, 2> x{1, 2};
    const std::array<std::int32_t, 2> ids{0, -1};
    const std::array<float, 2> weight{0.5, 0.5};
    Workers workers(1);

    const auto out = run_oracle({.routed = {&expert, 1},
                                 .shared = &expert,
                                 .x = x.data(),
                                 .expert_id = ids.data(),
                                 .weight = weight.data(),
                                 .rows = 1,
                                 .top_k = 2},
                                workers);

    EXPECT_EQ(out, (std::vector<double>{2.625, -5.25}));
}

TEST(Oracle, ClampsTheGateFromAboveAndTheUpProductOnBothSides) {
    // gate = 4 and up = -4 clamp to 1 and -1: silu(1) = 0.7311 -> bf16 187 / 256 -> FP8 (step 16 / 256) 192 / 256.
    const RawExpert expert{.w1 = bf16_matrix(1, 1, {4}), .w3 = bf16_matrix(1, 1, {-4}), .w2 = bf16_matrix(1, 1, {1})};
    const float x = 1;
    const std::int32_t none = -1;
    const float weight = 1;
    Workers workers(1);

    const auto out = run_oracle({.routed = {},
                                 .shared = &expert,
                                 .limit = 1,
                                 .x = &x,
                                 .expert_id = &none,
                                 .weight = &weight,
                                 .rows = 1,
                                 .top_k = 1},
                                workers);

    EXPECT_EQ(out, std::vector<double>{-0.75});
}

TEST(Oracle, RoundsAsTheFormatsDo) {
    EXPECT_TRUE(rc::check([] {
        const auto bits = *rc::gen::inRange<std::uint32_t>(0x0080'0000, 0x7F00'0000);
        const bool negative = *rc::gen::arbitrary<bool>();
        const float x = std::bit_cast<float>(bits | (negative ? 0x8000'0000U : 0U));
        RC_ASSERT(oracle_bf16(x) == static_cast<double>(ops::round_bf16(x)));
    }));
    EXPECT_TRUE(rc::check([] {
        std::vector<float> x;
        for (int i = 0; i < 200; ++i) {
            x.push_back(ops::round_bf16(static_cast<float>(*rc::gen::inRange(-100000, 100000)) * 1e-3F));
        }
        std::vector<double> exact(x.begin(), x.end());
        ops::simulate_fp8(x.data(), static_cast<std::int64_t>(x.size()), 128);
        oracle_fp8(exact);
        RC_ASSERT(std::equal(x.begin(), x.end(), exact.begin(), [](double a, double b) { return a == b; }));
    }));
}

TEST(Oracle, ANotANumberIsAnInfiniteError) {
    const std::array<float, 2> got{1, NAN};
    const std::array<double, 2> expected{1, 1};
    EXPECT_TRUE(std::isinf(relative_error(got, expected)));
}

TEST(Routes, AreDifferentExpertsInRangeWhateverTheSkew) {
    EXPECT_TRUE(rc::check([] {
        const auto kind = *rc::gen::element<std::string>("uniform", "log-normal", "log-normal:3", "one-rank");
        const auto seed = *rc::gen::arbitrary<std::uint64_t>();
        const Geometry g = tiny();
        const Routes routes = make_routes(routing(kind), g, 4, 7, seed);
        const std::int32_t limit = kind == "one-rank" ? g.num_experts / 4 : g.num_experts;
        for (std::int64_t row = 0; row < 7; ++row) {
            const auto* ids = routes.expert_id.data() + row * g.top_k;
            RC_ASSERT(std::set<std::int32_t>(ids, ids + g.top_k).size() == static_cast<std::size_t>(g.top_k));
            RC_ASSERT(std::all_of(ids, ids + g.top_k, [&](std::int32_t id) { return id >= 0 && id < limit; }));
            const auto* w = routes.weight.data() + row * g.top_k;
            RC_ASSERT(std::abs(w[0] + w[1] + w[2] + w[3] - 1.5F) < 1e-5F);
        }
    }));
}

TEST(Routes, OfARowDoNotDependOnTheNumberOfRows) {
    const Routes few = make_routes(routing("log-normal"), tiny(), 2, 3, 1);
    const Routes many = make_routes(routing("log-normal"), tiny(), 2, 30, 1);
    EXPECT_TRUE(std::equal(few.expert_id.begin(), few.expert_id.end(), many.expert_id.begin()));
    EXPECT_TRUE(std::equal(few.weight.begin(), few.weight.end(), many.weight.begin()));
}

TEST(Routes, ALargerSigmaFavoursFewerExperts) {
    const auto largest_share = [](const std::string& text) {
        const Routes routes = make_routes(routing(text), tiny(), 1, 500, 1);
        std::vector<int> count(32);
        for (const std::int32_t id : routes.expert_id) {
            ++count[static_cast<std::size_t>(id)];
        }
        return *std::max_element(count.begin(), count.end());
    };
    EXPECT_LT(largest_share("uniform"), 100);       // 62 expected
    EXPECT_GT(largest_share("log-normal:2"), 300);  // of 500
}

TEST(Routes, ToOneExpertLeaveTheOtherChoicesEmpty) {
    const Routes routes = make_routes(routing("one-expert"), tiny(), 1, 2, 1);
    EXPECT_EQ(routes.expert_id, (std::vector<std::int32_t>{0, -1, -1, -1, 0, -1, -1, -1}));
}

TEST(Routes, ARecordedFileIsRepeated) {
    Routing recorded = routing("file:routes.jsonl");
    recorded.recorded = parse_recorded("[3, 1, 0, -1]\n\n[31, 2, 4, 5]\n", tiny()).value();
    const Routes routes = make_routes(recorded, tiny(), 1, 3, 1);
    EXPECT_EQ(routes.expert_id, (std::vector<std::int32_t>{3, 1, 0, -1, 31, 2, 4, 5, 3, 1, 0, -1}));
}

TEST(Routes, AWrongLineOfARecordedFileIsNamed) {
    for (const char* text : {"[0, 1, 2, 3]\n[0, 1, 2]", "[0, 1, 2, 3]\n[0, 1, 2, 32]", "[0, 1, 2, 3]\n{}",
                             "[0, 1, 2, 3]\n[0, 1, 2, 1.5]", "[0, 1, 2, 3]\n[0, 1, 2, -2]", "[0, 1, 2, 3]\nx"}) {
        const auto read = parse_recorded(text, tiny());
        ASSERT_FALSE(read) << text;
        EXPECT_NE(read.error().what.find("line 2"), std::string::npos) << read.error().what;
    }
    EXPECT_FALSE(parse_recorded("\n", tiny()));
}

TEST(Names, AMistypedOneGetsTheNearest) {
    EXPECT_EQ(find_geometry("flash-shar").error().hint, "did you mean `flash-share`?");
    EXPECT_EQ(parse_format("fp5").error().hint, "did you mean `fp4`?");
    EXPECT_EQ(parse_routing("unifrom").error().hint, "did you mean `uniform`?");
    EXPECT_FALSE(parse_routing("log-normal:x"));
    EXPECT_FALSE(parse_routing("uniform:2"));
}

TEST(Experts, OneSeedGivesTheSameCodesAndAnotherDoesNot) {
    const auto codes = [](std::uint64_t seed) { return random_expert(tiny(), WeightFormat::kFp4, seed, 3).w1.codes; };
    EXPECT_EQ(codes(1), codes(1));
    EXPECT_NE(codes(1), codes(2));
}

TEST(Experts, AreFiniteAndOfTheDeviationThatKeepsActivationsSane) {
    for (const auto format : {WeightFormat::kFp4, WeightFormat::kFp8, WeightFormat::kBf16}) {
        const RawMatrix m = random_expert(tiny(), format, 1, 0).w2;  // [256, 128]
        double squares = 0;
        for (std::int32_t r = 0; r < m.rows; ++r) {
            for (std::int32_t c = 0; c < m.cols; ++c) {
                const double v = ops::matrix_element(m.view(), r, c);
                squares += v * v;
            }
        }
        const double norm = std::sqrt(squares / m.rows);  // of a row
        EXPECT_GT(norm, 0.4) << name_of(format);
        EXPECT_LT(norm, 2.5) << name_of(format);
    }
}

TEST(Split, CoversAllRowsInOrder) {
    EXPECT_EQ(split_unevenly(16, 1), (Split{0, 16}));
    EXPECT_EQ(split_unevenly(16, 2), (Split{0, 0, 16}));
    EXPECT_EQ(split_unevenly(12, 4), (Split{0, 0, 2, 6, 12}));
    EXPECT_EQ(split_evenly(3, 2), (Split{0, 3, 6}));
}

TEST(Check, EveryBackendPassesOnEveryNumberOfRanks) {
    for (const char* text : {"uniform", "one-expert", "one-rank"}) {
        CheckOptions options;
        options.geometry = tiny();
        options.formats = {WeightFormat::kFp4, WeightFormat::kFp8, WeightFormat::kBf16};
        options.routing = routing(text);
        options.isa = cpu::detect_isa();
        int rows = 0;
        const auto passed = run_check(options, [&](const CheckRow& row) {
            ++rows;
            EXPECT_TRUE(row.passed()) << text << ' ' << check_line(row);
        });
        ASSERT_TRUE(passed) << to_string(passed.error());
        EXPECT_TRUE(passed.value());
        EXPECT_EQ(rows, 3 * 4 * 3);
    }
}

// The oracle must be able to see what it is there for.
TEST(Check, AnotherLimitOrOneWrongExpertIsFarAboveTheBar) {
    const Geometry g = tiny();
    const Batch batch = make_batch(routing("uniform"), g, 1, 16, 1);
    Workers workers(1);
    std::vector<RawExpert> routed;
    for (std::int32_t e = 0; e < g.num_experts; ++e) {
        routed.push_back(random_expert(g, WeightFormat::kFp4, 1, e));
    }
    const RawExpert shared = random_expert(g, WeightFormat::kFp4, 1, kSharedExpert);
    const LayerExperts packed = random_layer(g, WeightFormat::kFp4, 1, workers);
    const auto out =
        run_once({MoeBackend::kStandard, 1, 1, cpu::detect_isa()}, g, packed, batch, split_evenly(batch.rows, 1));
    ASSERT_TRUE(out) << to_string(out.error());
    const auto error_with = [&](std::span<const RawExpert> experts, float limit) {
        return relative_error(out.value(), run_oracle({.routed = experts,
                                                       .shared = &shared,
                                                       .limit = limit,
                                                       .x = batch.x.data(),
                                                       .expert_id = batch.routes.expert_id.data(),
                                                       .weight = batch.routes.weight.data(),
                                                       .rows = batch.rows,
                                                       .top_k = g.top_k},
                                                      workers));
    };

    EXPECT_LE(error_with(routed, kSwigluLimit), kErrorBar);
    EXPECT_GT(error_with(routed, 9.5F), 3 * kErrorBar);
    std::swap(routed[0].w1, routed[0].w3);
    EXPECT_GT(error_with(routed, kSwigluLimit), 10 * kErrorBar);
}

TEST(Check, RanksThatDoNotDivideTheExpertsAreRefused) {
    CheckOptions options;
    options.geometry = tiny();
    options.formats = {WeightFormat::kBf16};
    options.ranks = {3};
    options.tokens = 2;
    options.isa = cpu::detect_isa();
    const auto passed = run_check(options, [](const CheckRow&) {});
    ASSERT_FALSE(passed);
    EXPECT_NE(passed.error().what.find("do not divide"), std::string::npos);
}

TEST(Check, ARowWithOtherBitsOrTooLargeAnErrorFails) {
    EXPECT_TRUE((CheckRow{.error = 1e-3}.passed()));
    EXPECT_FALSE((CheckRow{.error = 1.1e-3}.passed()));
    EXPECT_FALSE((CheckRow{.different = 1}.passed()));
    EXPECT_NE(check_line({.different = 1}).find("FAILED"), std::string::npos);
}

TEST(Bench, RowsHoldTheirWorkTheirRoofAndTheirStages) {
    BenchOptions options;
    options.geometry = tiny();
    options.formats = {WeightFormat::kFp4};
    options.routings = {routing("uniform"), routing("one-expert")};
    options.tokens = {1, 64};
    options.repeats = 3;
    options.isa = cpu::detect_isa();
    const Roofs roofs{.read = [](std::int32_t threads) { return threads * 1e9; },
                      .product = [](std::int32_t, std::int32_t, std::int32_t, std::int32_t) { return std::nullopt; }};
    std::vector<BenchRow> rows;
    const auto done = run_bench(
        options, roofs, [&](const BenchRow& row) { rows.push_back(row); }, [](const BenchProgress&) {});

    ASSERT_TRUE(done) << to_string(done.error());
    ASSERT_EQ(rows.size(), 12U);
    const double expert_operations = 6.0 * 256 * 128;
    EXPECT_DOUBLE_EQ(rows.front().operations,
                     expert_operations * (8 + 2));  // 2 ranks, 1 token, 4 experts and the shared
    EXPECT_EQ(rows.front().roof, "stream read");
    EXPECT_DOUBLE_EQ(rows.front().roof_rate, 2e9);
    EXPECT_EQ(rows.back().roof, "no oneDNN");
    EXPECT_FALSE(rows.back().roof_fraction(1));
    EXPECT_EQ(rows.back().visited_experts, 1);
    EXPECT_DOUBLE_EQ(rows.back().rows_an_expert, 128);
    for (const BenchRow& row : rows) {
        EXPECT_GT(row.median_us, 0);
        EXPECT_GE(row.median_us, row.fastest_us);
        EXPECT_GT(row.stages_us[static_cast<std::size_t>(Stage::kExperts)] +
                      row.stages_us[static_cast<std::size_t>(Stage::kShared)],
                  0);
    }
    EXPECT_NE(bench_json(options, rows).find("\"roof_fraction\": null"), std::string::npos);
}

}  // namespace
}  // namespace megamoe::moe::op
