#include "weights/synth_router.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace megamoe::weights {
namespace {

SynthOptions options_with(std::int32_t num_experts, std::int32_t top_k, double sigma, double drift) {
    SynthOptions options;
    options.geometry.vocab_size = 4096;
    options.geometry.hidden_size = 256;
    options.geometry.num_experts = num_experts;
    options.geometry.top_k = top_k;
    options.router_skew_sigma = sigma;
    options.router_drift = drift;
    return options;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const auto n = static_cast<double>(a.size());
    const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
    const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
    double ab = 0;
    double aa = 0;
    double bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / std::sqrt(aa * bb);
}

std::vector<double> log_probabilities(const SynthRouter& router, std::int32_t domain, std::int32_t num_experts) {
    std::vector<double> logs;
    for (std::int32_t e = 0; e < num_experts; ++e) {
        logs.push_back(std::log(router.probability(domain, e)));
    }
    return logs;
}

// How often each expert is picked by tokens of `domain` in a score layer; its inputs are normal and lean as embeddings.
std::vector<double> simulate_score_layer(const SynthOptions& options, const SynthRouter& router, std::int32_t domain) {
    constexpr int kTokens = 1500;
    const auto hidden = static_cast<std::size_t>(options.geometry.hidden_size);
    const auto num_experts = static_cast<std::size_t>(options.geometry.num_experts);
    std::vector<std::vector<float>> gate(num_experts, std::vector<float>(hidden));
    for (std::size_t e = 0; e < num_experts; ++e) {
        router.fill_gate_row(static_cast<std::int32_t>(e), gate[e]);
    }
    const SynthRandom random(99, "tokens");
    const DomainDirections directions(options.seed);
    const double lean = embeddings_lean(options) ? 0.9 * std::sqrt(SynthRouter::kLean) : 0;
    std::vector<double> load(num_experts);
    for (int t = 0; t < kTokens; ++t) {
        std::vector<std::pair<double, std::size_t>> ranked;
        for (std::size_t e = 0; e < num_experts; ++e) {
            double logit = 0;
            for (std::size_t c = 0; c < hidden; ++c) {
                const auto channel = static_cast<std::int64_t>(c);
                const double x =
                    lean * directions.at(domain, channel) +
                    std::sqrt(1 - lean * lean) * random.normal(t * static_cast<std::int64_t>(hidden) + channel);
                logit += gate[e][c] * x;
            }
            ranked.emplace_back(std::sqrt(std::log1p(std::exp(logit))) + router.bias(static_cast<std::int32_t>(e)), e);
        }
        std::sort(ranked.rbegin(), ranked.rend());
        for (std::int32_t k = 0; k < options.geometry.top_k; ++k) {
            load[ranked[static_cast<std::size_t>(k)].second] += 1.0 / kTokens;
        }
    }
    return load;
}

TEST(SynthRouter, GivesEveryTokenTopKPicks) {
    EXPECT_TRUE(rc::check([] {
        const auto num_experts = *rc::gen::inRange(1, 300);
        const auto top_k = *rc::gen::inRange(1, num_experts + 1);
        const SynthOptions options =
            options_with(num_experts, top_k, *rc::gen::inRange(0, 40) * 0.1, *rc::gen::inRange(0, 11) * 0.1);
        const SynthRouter router(options, *rc::gen::inRange(0, 60));
        for (std::int32_t d = 0; d < kSynthDomains; ++d) {
            double total = 0;
            for (std::int32_t e = 0; e < num_experts; ++e) {
                RC_ASSERT(router.probability(d, e) > 0 && router.probability(d, e) <= 1);
                total += router.probability(d, e);
            }
            RC_ASSERT(std::abs(total - top_k) < 1e-9 * num_experts);
        }
        for (std::int32_t e = 0; e < num_experts; ++e) {
            RC_ASSERT(std::isfinite(router.bias(e)));
        }
        std::vector<std::int64_t> experts(static_cast<std::size_t>(top_k));
        router.draw_experts(*rc::gen::inRange(0, 4096), experts);
        const std::set<std::int64_t> distinct(experts.begin(), experts.end());
        RC_ASSERT(distinct.size() == experts.size());
        RC_ASSERT(*distinct.begin() >= 0 && *distinct.rbegin() < num_experts);
    }));
}

TEST(SynthRouter, DrawsHashExpertsAsOftenAsWanted) {
    const SynthOptions options = options_with(16, 3, 1.0, 0.5);
    const SynthRouter router(options, 0);
    std::vector<double> counts(kSynthDomains * 16);
    std::vector<std::int64_t> experts(3);
    for (std::int64_t token = 0; token < 4096; ++token) {
        router.draw_experts(token, experts);
        for (const std::int64_t e : experts) {
            counts[static_cast<std::size_t>(domain_of(token, 4096) * 16 + e)] += 1.0 / 1024;
        }
    }
    for (std::int32_t d = 0; d < kSynthDomains; ++d) {
        for (std::int32_t e = 0; e < 16; ++e) {
            EXPECT_NEAR(counts[static_cast<std::size_t>(d * 16 + e)], router.probability(d, e), 0.065);  // 4 deviations
        }
    }
}

TEST(SynthRouter, SpreadsPopularityByTheWantedSigma) {
    const SynthOptions options = options_with(256, 6, 1.0, 0);
    double square = 0;
    for (std::int32_t layer = 0; layer < 10; ++layer) {
        const auto logs = log_probabilities(SynthRouter(options, layer), 0, 256);
        const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / 256;
        for (const double x : logs) {
            square += (x - mean) * (x - mean) / 2560;
        }
    }
    EXPECT_NEAR(std::sqrt(square), 1.0, 0.06);
}

TEST(SynthRouter, MovesTheDomainsApartByTheDrift) {
    const auto similarity = [](double drift) {
        const SynthRouter router(options_with(512, 6, 0.7, drift), 5);
        return correlation(log_probabilities(router, 0, 512), log_probabilities(router, 3, 512));
    };
    EXPECT_NEAR(similarity(0), 1, 1e-9);
    EXPECT_NEAR(similarity(0.6), 0.64, 0.1);
    EXPECT_NEAR(similarity(1), 0, 0.15);
}

TEST(SynthRouter, MakesScoreLayersFollowTheWantedLoad) {
    for (const auto& [num_experts, top_k] : {std::pair(16, 4), std::pair(64, 6)}) {
        for (const double drift : {0.0, 0.7}) {
            const SynthOptions options = options_with(num_experts, top_k, 1.0, drift);
            const SynthRouter router(options, 2);
            for (const std::int32_t domain : {0, 2}) {
                const std::vector<double> load = simulate_score_layer(options, router, domain);
                std::vector<double> wanted;
                double error = 0;
                for (std::int32_t e = 0; e < num_experts; ++e) {
                    wanted.push_back(router.probability(domain, e));
                    error += std::abs(load[static_cast<std::size_t>(e)] - wanted.back()) / top_k / 2;
                }
                EXPECT_GT(correlation(load, wanted), 0.97) << num_experts << " " << drift;
                EXPECT_LT(error, 0.1) << num_experts << " " << drift;  // share of picks that went elsewhere
            }
        }
    }
}

TEST(SynthRouter, LoadsAllExpertsAlikeWithoutSkew) {
    const SynthOptions options = options_with(32, 4, 0, 0.5);
    const SynthRouter router(options, 1);

    for (const double load : simulate_score_layer(options, router, 0)) {
        EXPECT_NEAR(load, 4.0 / 32, 0.03);
    }
}

TEST(DomainDirections, AreOrthogonalSigns) {
    const DomainDirections directions(5);
    for (std::int32_t a = 0; a < kSynthDomains; ++a) {
        for (std::int32_t b = 0; b < kSynthDomains; ++b) {
            float dot = 0;
            for (std::int64_t c = 0; c < 32; ++c) {
                dot += directions.at(a, c) * directions.at(b, c);
            }
            EXPECT_EQ(dot, a == b ? 32 : 0);
        }
    }
}

TEST(DomainOf, CutsTheVocabularyIntoEqualRanges) {
    EXPECT_EQ(domain_of(0, 4096), 0);
    EXPECT_EQ(domain_of(1023, 4096), 0);
    EXPECT_EQ(domain_of(1024, 4096), 1);
    EXPECT_EQ(domain_of(4095, 4096), 3);
}

}  // namespace
}  // namespace megamoe::weights
