#include "engine/request.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace megamoe::engine {
namespace {

TEST(CheckSampling, RefusesEachFieldOutsideItsRangeByName) {
    const auto refusal = [](auto change) {
        SamplingParams params;
        change(params);
        const auto result = check_sampling(params, 40);
        return result ? std::string() : result.error().what;
    };

    EXPECT_EQ(refusal([](SamplingParams&) {}), "");
    EXPECT_EQ(refusal([](SamplingParams& p) { p.top_p = 0; }), "top_p is 0, must be above 0 and at most 1");
    EXPECT_EQ(refusal([](SamplingParams& p) { p.top_k = 0; }), "top_k is 0, must be -1 or at least 1");
    EXPECT_EQ(refusal([](SamplingParams& p) { p.min_p = 1.5F; }), "min_p is 1.5, must be from 0 to 1");
    EXPECT_EQ(refusal([](SamplingParams& p) { p.min_tokens = 17; }),
              "min_tokens is 17, must be from 0 to max_tokens (16)");
    EXPECT_EQ(refusal([](SamplingParams& p) { p.stop_token_ids = {40}; }),
              "stop_token_ids names token 40, the vocabulary has ids 0 to 39");
    for (const auto field :
         {&SamplingParams::temperature, &SamplingParams::top_p, &SamplingParams::min_p,
          &SamplingParams::repetition_penalty, &SamplingParams::presence_penalty, &SamplingParams::frequency_penalty}) {
        EXPECT_NE(refusal([&](SamplingParams& p) { p.*field = std::numeric_limits<float>::quiet_NaN(); }), "");
        EXPECT_NE(refusal([&](SamplingParams& p) { p.*field = -2.5F; }), "");
    }
    for (const std::int32_t max_tokens : {0, -1}) {
        EXPECT_NE(refusal([&](SamplingParams& p) { p.max_tokens = max_tokens; }), "");
    }
    EXPECT_NE(refusal([](SamplingParams& p) { p.logit_bias = {{0, 101.0F}}; }), "");
    EXPECT_NE(refusal([](SamplingParams& p) { p.num_logprobs = -2; }), "");
}

}  // namespace
}  // namespace megamoe::engine
