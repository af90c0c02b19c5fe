#include "model/sampler.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

namespace megamoe::model {
namespace {

const TokenCounts kNoOutput;
constexpr std::int32_t kEos = 1;

Result<Sampled> sample(const std::vector<float>& logits, const SamplingParams& params, std::int64_t position = 0,
                       std::uint64_t seed = 0, const TokenCounts& counts = kNoOutput, std::int32_t num_generated = 0) {
    Sampler sampler;
    return sampler.sample({.logits = logits,
                           .params = params,
                           .output_counts = counts,
                           .num_generated = num_generated,
                           .position = position,
                           .seed = seed,
                           .eos_id = kEos});
}

std::int32_t token_of(const Result<Sampled>& result) {
    return result ? result.value().token : -1;
}

// The pipeline as the spec words it, in float64 with full sorts: the probability of every token.
std::vector<double> reference_distribution(std::vector<double> x, const SamplingParams& p, const TokenCounts& counts) {
    for (const auto& [token, count] : counts) {
        double& v = x[static_cast<std::size_t>(token)];
        v -= static_cast<double>(p.frequency_penalty) * count + p.presence_penalty;
        v = v > 0 ? v / p.repetition_penalty : v * p.repetition_penalty;
    }
    for (const auto& [token, bias] : p.logit_bias) {
        x[static_cast<std::size_t>(token)] += bias;
    }
    double sum = 0;
    const double max = *std::max_element(x.begin(), x.end());
    for (double& v : x) {
        sum += v = std::exp((v - max) / p.temperature);
    }
    for (double& v : x) {
        v /= sum;
    }
    std::vector<std::size_t> order(x.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return x[a] > x[b]; });
    std::vector<double> kept(x.size(), 0);
    double cumulative = 0;
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
        const double prob = x[order[rank]];
        cumulative += prob;
        const bool in_k = p.top_k < 0 || rank < static_cast<std::size_t>(p.top_k);
        if (in_k && cumulative - prob <= p.top_p && prob >= p.min_p * x[order[0]]) {
            kept[order[rank]] = prob;
        }
    }
    const double total = std::accumulate(kept.begin(), kept.end(), 0.0);
    for (double& v : kept) {
        v /= total;
    }
    return kept;
}

// Chi-square distance of `draws` samples from the reference, in units of its standard deviation.
double chi_square_sigmas(const std::vector<float>& logits, const SamplingParams& params, const TokenCounts& counts,
                         std::int32_t draws) {
    const std::vector<double> want =
        reference_distribution(std::vector<double>(logits.begin(), logits.end()), params, counts);
    std::vector<double> seen(want.size(), 0);
    Sampler sampler;
    for (std::int32_t i = 0; i < draws; ++i) {
        const auto result = sampler.sample(
            {.logits = logits, .params = params, .output_counts = counts, .position = i, .seed = 42, .eos_id = kEos});
        seen[static_cast<std::size_t>(result.value().token)] += 1;
    }
    double chi = 0;
    double freedom = -1;
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (want[i] == 0) {
            EXPECT_EQ(seen[i], 0) << "token " << i << " is filtered out";
            continue;
        }
        chi += (seen[i] - want[i] * draws) * (seen[i] - want[i] * draws) / (want[i] * draws);
        freedom += 1;
    }
    return freedom == 0 ? 0 : (chi - freedom) / std::sqrt(2 * freedom);
}

TEST(Sampler, DrawsFromTheReferenceDistribution) {
    const std::vector<float> logits{1.0F, 0.5F, -0.3F, 2.0F, 1.9F, -1.0F, 0.0F, 0.7F};
    const TokenCounts counts{{3, 2}, {5, 1}};
    std::vector<SamplingParams> cases(9);
    cases[1].temperature = 0.5F;
    cases[2].top_p = 0.7F;
    cases[3].top_k = 3;
    cases[4].min_p = 0.3F;
    cases[5].temperature = 1.7F, cases[5].top_k = 5, cases[5].top_p = 0.8F, cases[5].min_p = 0.1F;
    cases[6].repetition_penalty = 1.5F;
    cases[7].frequency_penalty = 0.4F, cases[7].presence_penalty = -0.2F;
    cases[8].logit_bias = {{0, 1.5F}, {4, -2.0F}};

    for (std::size_t i = 0; i < cases.size(); ++i) {
        // The seed is fixed, so this cannot flicker; 4 sigma leaves no room for a wrong filter.
        EXPECT_LT(std::abs(chi_square_sigmas(logits, cases[i], counts, 20000)), 4) << "case " << i;
    }
}

TEST(Sampler, NeverLeavesTheFilteredSet) {
    EXPECT_TRUE(rc::check([] {
        std::vector<float> logits(*rc::gen::inRange<std::size_t>(2, 500));
        for (float& x : logits) {
            x = static_cast<float>(*rc::gen::inRange(-40, 41)) / 8;  // coarse: many ties
        }
        SamplingParams params;
        params.temperature = static_cast<float>(*rc::gen::inRange(1, 20)) / 8;
        params.top_k = *rc::gen::element(-1, 2, 7, 70, 400);
        params.top_p = static_cast<float>(*rc::gen::inRange(1, 9)) / 8;
        params.min_p = static_cast<float>(*rc::gen::inRange(0, 3)) / 64;
        const auto want = reference_distribution(std::vector<double>(logits.begin(), logits.end()), params, kNoOutput);
        // A cut that float32 may place one token to the side is no failure: allow the neighbour at 1e-5 of mass.
        SamplingParams wider = params;
        wider.top_p = params.top_p + 1e-5F;
        wider.min_p = params.min_p * (1 - 1e-5F);
        const auto wide = reference_distribution(std::vector<double>(logits.begin(), logits.end()), wider, kNoOutput);

        for (std::int64_t position = 0; position < 20; ++position) {
            const auto token = static_cast<std::size_t>(token_of(sample(logits, params, position, 9)));
            RC_ASSERT(want[token] > 0 || wide[token] > 0);
        }
    }));
}

TEST(Sampler, DrawDependsOnSeedAndPositionAlone) {
    const std::vector<float> logits(100, 0.0F);
    SamplingParams params;
    Sampler used;
    for (std::int64_t i = 0; i < 50; ++i) {  // a sampler that has seen other rows, of other sizes
        const std::vector<float> other(static_cast<std::size_t>(20 + i), 1.0F);
        (void)used.sample({.logits = other, .params = params, .output_counts = kNoOutput, .position = i, .seed = 7});
    }
    std::set<std::int32_t> tokens;
    for (std::int64_t position = 0; position < 40; ++position) {
        const SampleInput input{
            .logits = logits, .params = params, .output_counts = kNoOutput, .position = position, .seed = 5};
        const std::int32_t token = token_of(used.sample(input));
        EXPECT_EQ(token, token_of(sample(logits, params, position, 5)));
        tokens.insert(token);
    }

    EXPECT_GT(tokens.size(), 20U);  // 40 uniform draws from 100 repeat little
}

TEST(Sampler, ADrawDoesNotMoveWhenOnlyTokensThatDidNotWinAreRemoved) {
    const std::vector<float> logits{0.1F, 0.9F, 0.4F, 0.3F, 0.6F};
    SamplingParams params;
    for (std::int64_t position = 0; position < 50; ++position) {
        const std::int32_t winner = token_of(sample(logits, params, position, 3));
        std::vector<float> fewer = logits;
        fewer[static_cast<std::size_t>((winner + 1) % 5)] = -std::numeric_limits<float>::infinity();

        EXPECT_EQ(token_of(sample(fewer, params, position, 3)), winner);
    }
}

TEST(Sampler, HashIsUniformOverItsBits) {
    constexpr int kDraws = 40000;
    std::vector<int> ones(32, 0);
    for (int i = 0; i < kDraws; ++i) {
        const std::uint32_t h = hash32(1, i / 200, i % 200);
        for (std::size_t bit = 0; bit < 32; ++bit) {
            ones[bit] += static_cast<int>((h >> bit) & 1U);
        }
    }
    for (const int n : ones) {
        EXPECT_NEAR(n, kDraws / 2, 4.5 * std::sqrt(kDraws) / 2);
    }
}

TEST(Sampler, GreedyTakesTheLowestIdOfEquals) {
    SamplingParams params;
    params.temperature = 0;
    EXPECT_EQ(token_of(sample(std::vector<float>{1, 3, 3, 2}, params)), 1);

    params.temperature = 1;
    params.top_k = 1;
    EXPECT_EQ(token_of(sample(std::vector<float>{1, 2, 5, 5}, params, 4, 9)), 2);
}

TEST(Sampler, PenaltiesFollowTheSpecOrder) {
    SamplingParams params;
    params.temperature = 0;
    params.frequency_penalty = 0.5F;
    params.presence_penalty = 0.25F;
    params.repetition_penalty = 2;
    const TokenCounts counts{{0, 2}, {2, 1}};
    // token 0: (3 - 2*0.5 - 0.25) / 2 = 0.875; token 2: (0.5 - 0.75) * 2 = -0.5
    EXPECT_EQ(token_of(sample(std::vector<float>{3.0F, 0.874F, 0.5F}, params, 0, 0, counts)), 0);
    EXPECT_EQ(token_of(sample(std::vector<float>{3.0F, 0.876F, 0.5F}, params, 0, 0, counts)), 1);
    EXPECT_EQ(token_of(sample(std::vector<float>{-9.0F, -0.51F, 0.5F}, params, 0, 0, counts)), 2);
    EXPECT_EQ(token_of(sample(std::vector<float>{-9.0F, -0.49F, 0.5F}, params, 0, 0, counts)), 1);
}

TEST(Sampler, EosAndStopIdsAreMaskedUntilMinTokens) {
    SamplingParams params;
    params.temperature = 0;
    params.min_tokens = 2;
    params.stop_token_ids = {2};
    const std::vector<float> logits{0, 5, 4, 1};

    EXPECT_EQ(token_of(sample(logits, params, 0, 0, kNoOutput, 1)), 3);
    EXPECT_EQ(token_of(sample(logits, params, 0, 0, kNoOutput, 2)), kEos);
    params.ignore_eos = true;
    EXPECT_EQ(token_of(sample(logits, params, 0, 0, kNoOutput, 1)), kEos);  // an ordinary token then
}

TEST(Sampler, LogprobsOfASampledRowComeAfterTemperatureAndBeforeTheFilters) {
    SamplingParams params;
    params.temperature = 2;
    params.top_k = 2;
    params.num_logprobs = 3;
    const std::vector<float> logits{1, 3, 2, 3};

    const Sampled out = sample(logits, params, 0, 1).value();

    double sum = 0;
    for (const float x : logits) {
        sum += std::exp(x / 2.0);
    }
    ASSERT_EQ(out.top.size(), 3U);
    EXPECT_EQ(out.top[0].token, 1);
    EXPECT_EQ(out.top[1].token, 3);
    EXPECT_EQ(out.top[2].token, 2);
    EXPECT_NEAR(out.top[0].logprob, 1.5 - std::log(sum), 1e-6);
    EXPECT_NEAR(out.top[2].logprob, 1.0 - std::log(sum), 1e-6);
    EXPECT_NEAR(out.logprob, 1.5 - std::log(sum), 1e-6);
}

TEST(Sampler, LogprobsOfAGreedyRowAreThoseOfTheModelsOwnLogits) {
    SamplingParams params;
    params.temperature = 0;
    params.logit_bias = {{0, 10.0F}};
    params.num_logprobs = 1;
    const std::vector<float> logits{1, 3, 2};

    const Sampled out = sample(logits, params).value();

    const double log_sum = std::log(std::exp(1.0) + std::exp(3.0) + std::exp(2.0));
    EXPECT_EQ(out.token, 0);
    EXPECT_NEAR(out.logprob, 1 - log_sum, 1e-6);
    EXPECT_EQ(out.top[0].token, 1);
}

TEST(Sampler, ABrokenRowIsAnErrorOfThatRow) {
    SamplingParams params;
    const float nan = std::numeric_limits<float>::quiet_NaN();

    const auto broken = sample({0, nan, 1}, params);

    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().what, "the model's logit of token 1 is nan");
    EXPECT_FALSE(sample({0, std::numeric_limits<float>::infinity()}, params));
}

TEST(Sampler, MaskingEveryTokenIsAnError) {
    SamplingParams params;
    params.min_tokens = 1;
    params.stop_token_ids = {0};

    EXPECT_FALSE(sample(std::vector<float>{1, 2}, params));
}

}  // namespace
}  // namespace megamoe::model
