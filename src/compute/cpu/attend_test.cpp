#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compute/cpu/row_ops.h"
#include "compute/cpu/test_data.h"

namespace megamoe::cpu {
namespace {

std::vector<std::uint16_t> codes_of(const std::vector<float>& x) {
    std::vector<std::uint16_t> codes(x.size());
    std::transform(x.begin(), x.end(), codes.begin(), ops::to_bf16);
    return codes;
}

// Operands of one query, all values bf16, the latents also as codes.
struct Query {
    std::int32_t heads, dim, rows;
    std::vector<float> q, kv, sink;
    std::vector<std::uint16_t> kv_codes;

    Query(std::int32_t num_heads, std::int32_t width, std::int32_t num_rows, std::uint32_t seed)
        : heads(num_heads),
          dim(width),
          rows(num_rows),
          q(random_floats(static_cast<std::int64_t>(heads) * dim, seed, true)),
          kv(random_floats(static_cast<std::int64_t>(rows) * dim, seed + 1, true)),
          sink(random_floats(heads, seed + 2)),
          kv_codes(codes_of(kv)) {}
};

struct Answer {
    std::vector<float> out, probabilities;
};

Answer run(Isa isa, const Query& query, bool kv_bf16, Rounding rounding) {
    Answer answer;
    answer.out.resize(query.q.size());
    answer.probabilities.resize(static_cast<std::size_t>(query.heads) * static_cast<std::size_t>(query.rows));
    std::vector<float> scratch(static_cast<std::size_t>(attend_scratch(query.heads, query.dim, query.rows)));
    attend(isa, {.q = query.q.data(),
                 .kv = kv_bf16 ? static_cast<const void*>(query.kv_codes.data()) : query.kv.data(),
                 .kv_bf16 = kv_bf16,
                 .heads = query.heads,
                 .dim = query.dim,
                 .rows = query.rows,
                 .scale = 1.0F / std::sqrt(static_cast<float>(query.dim)),
                 .sink = query.sink.data(),
                 .rounding = rounding,
                 .out = answer.out.data(),
                 .probabilities = answer.probabilities.data(),
                 .scratch = scratch.data()});
    return answer;
}

// The formula of the spec in double precision, without any rounding.
struct Exact {
    std::vector<double> out, probabilities;
};

Exact exact(const Query& query) {
    Exact answer;
    for (std::int32_t h = 0; h < query.heads; ++h) {
        std::vector<double> e(static_cast<std::size_t>(query.rows));
        double max = query.sink[static_cast<std::size_t>(h)];
        for (std::int32_t r = 0; r < query.rows; ++r) {
            double sum = 0;
            for (std::int32_t d = 0; d < query.dim; ++d) {
                sum += static_cast<double>(query.q[static_cast<std::size_t>(h * query.dim + d)]) *
                       query.kv[static_cast<std::size_t>(r * query.dim + d)];
            }
            e[static_cast<std::size_t>(r)] = sum / std::sqrt(query.dim);
            max = std::max(max, e[static_cast<std::size_t>(r)]);
        }
        double total = std::exp(query.sink[static_cast<std::size_t>(h)] - max);
        for (double& v : e) {
            v = std::exp(v - max);
            total += v;
        }
        for (double& v : e) {
            v /= total;
            answer.probabilities.push_back(v);
        }
        for (std::int32_t d = 0; d < query.dim; ++d) {
            double sum = 0;
            for (std::int32_t r = 0; r < query.rows; ++r) {
                sum += e[static_cast<std::size_t>(r)] * query.kv[static_cast<std::size_t>(r * query.dim + d)];
            }
            answer.out.push_back(sum);
        }
    }
    return answer;
}

Query any_query() {
    return {*rc::gen::inRange(1, 40), *rc::gen::element(4, 17, 64, 96, 512), *rc::gen::inRange(1, 200),
            *rc::gen::arbitrary<std::uint32_t>()};
}

TEST(Attend, AgreesWithDoublePrecisionOnEveryIsa) {
    EXPECT_TRUE(rc::check([] {
        const Query query = any_query();
        const bool kv_bf16 = *rc::gen::arbitrary<bool>();
        const Rounding rounding = *rc::gen::element(Rounding::kNone, Rounding::kBf16);
        const Exact want = exact(query);
        // Profile ds rounds each exponential and each output to 8 bits: 2^-9 of the largest value, twice.
        const double tolerance = rounding == Rounding::kBf16 ? 4.0 * 0x1p-8 : 4.0 * 1e-5;
        for (const Isa isa : isas_of_this_machine()) {
            const Answer got = run(isa, query, kv_bf16, rounding);
            for (std::size_t i = 0; i < want.out.size(); ++i) {
                RC_ASSERT(std::fabs(got.out[i] - want.out[i]) <= tolerance);
            }
            for (std::size_t i = 0; i < want.probabilities.size(); ++i) {
                RC_ASSERT(std::fabs(got.probabilities[i] - want.probabilities[i]) <=
                          1e-5 * want.probabilities[i] + 1e-9);
            }
        }
    }));
}

TEST(Attend, AHeadDoesNotSeeItsNeighbours) {
    EXPECT_TRUE(rc::check([] {
        const Query query = any_query();
        const Isa isa = *rc::gen::elementOf(isas_of_this_machine());
        const bool kv_bf16 = *rc::gen::arbitrary<bool>();
        const Rounding rounding = *rc::gen::element(Rounding::kNone, Rounding::kBf16);
        const Answer all = run(isa, query, kv_bf16, rounding);

        Query one = query;
        const std::int32_t head = *rc::gen::inRange(0, query.heads);
        one.heads = 1;
        one.q.assign(query.q.begin() + head * query.dim, query.q.begin() + (head + 1) * query.dim);
        one.sink.assign(1, query.sink[static_cast<std::size_t>(head)]);
        const Answer alone = run(isa, one, kv_bf16, rounding);

        RC_ASSERT(std::equal(alone.out.begin(), alone.out.end(), all.out.begin() + head * query.dim));
    }));
}

TEST(Attend, TheSinkTakesWeightAndGivesNoValue) {
    Query query(1, 16, 1, 1);
    query.q.assign(16, 0.0F);
    query.kv.assign(16, 8.0F);
    query.kv_codes = codes_of(query.kv);
    query.sink = {std::log(3.0F)};
    for (const Isa isa : isas_of_this_machine()) {
        for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
            const Answer got = run(isa, query, true, rounding);
            EXPECT_NEAR(got.probabilities[0], 0.25F, 1e-6F) << name(isa);
            EXPECT_NEAR(got.out[0], 2.0F, 1e-5F) << name(isa);
        }
    }
}

TEST(Attend, RowsFarBelowTheMaximumCountNothing) {
    Query query(2, 64, 40, 9);
    for (float& v : query.q) {
        v *= 100.0F;  // scores hundreds apart: exp underflows to zero, without a NaN
    }
    for (const Isa isa : isas_of_this_machine()) {
        const Answer got = run(isa, query, true, Rounding::kBf16);
        EXPECT_TRUE(std::all_of(got.out.begin(), got.out.end(), [](float v) { return std::isfinite(v); })) << name(isa);
    }
}

TEST(IndexScores, AgreeWithDoublePrecisionOnEveryIsa) {
    EXPECT_TRUE(rc::check([] {
        const Query query = any_query();
        const bool keys_bf16 = *rc::gen::arbitrary<bool>();
        const Rounding rounding = *rc::gen::element(Rounding::kNone, Rounding::kBf16);
        const void* keys = keys_bf16 ? static_cast<const void*>(query.kv_codes.data()) : query.kv.data();
        auto weight = query.sink;
        for (float& w : weight) {
            w = ops::round_bf16(w);
        }
        for (const Isa isa : isas_of_this_machine()) {
            std::vector<float> got(static_cast<std::size_t>(query.rows));
            index_scores(isa, query.q.data(), keys, keys_bf16, weight.data(), query.heads, query.dim, query.rows,
                         rounding, got.data());
            for (std::int32_t r = 0; r < query.rows; ++r) {
                double sum = 0;
                double magnitude = 0;
                for (std::int32_t h = 0; h < query.heads; ++h) {
                    double dot = 0;
                    double size = 0;
                    for (std::int32_t d = 0; d < query.dim; ++d) {
                        const double term = static_cast<double>(query.q[static_cast<std::size_t>(h * query.dim + d)]) *
                                            query.kv[static_cast<std::size_t>(r * query.dim + d)];
                        dot += term;
                        size += std::fabs(term);
                    }
                    const double w = weight[static_cast<std::size_t>(h)];
                    sum += w * std::max(dot, 0.0);
                    magnitude += std::fabs(w) * size;
                }
                const double unit = rounding == Rounding::kBf16 ? 3 * 0x1p-8 : 1e-5;
                RC_ASSERT(std::fabs(got[static_cast<std::size_t>(r)] - sum) <= unit * magnitude);
            }
        }
    }));
}

TEST(IndexScores, ProfileDsRoundsDotProductAndSum) {
    const std::vector<float> q{1.0F, 1.0F, -1.0F, 0.0F};       // two heads of two
    const std::vector<float> keys{1.0F, 0x1p-8F, 3.0F, 0.5F};  // two keys of two
    const std::vector<float> weight{0.75F, 100.0F};
    for (const Isa isa : isas_of_this_machine()) {
        std::vector<float> got(2);
        index_scores(isa, q.data(), keys.data(), false, weight.data(), 2, 2, 2, Rounding::kBf16, got.data());
        EXPECT_EQ(got[0], 0.75F) << name(isa);   // 1 + 2^-8 is a tie and rounds to 1; the second head is rectified
        EXPECT_EQ(got[1], 2.625F) << name(isa);  // 3.5 * 0.75
    }
}

}  // namespace
}  // namespace megamoe::cpu
