// The pure parts of the client: arrival times, limits, addresses, bodies.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lab/client/arrivals.h"
#include "lab/client/descriptor_limit.h"
#include "lab/client/request_body.h"
#include "lab/client/server_probe.h"
#include "lab/client/target.h"

namespace megamoe::lab {
namespace {

TEST(Arrivals, AscendAndEndWhereTheRateSays) {
    EXPECT_TRUE(rc::check([](std::uint64_t seed) {
        const auto times =
            arrival_times_ns(200, {.rate = 50, .burstiness = 0.5, .ramp_up = std::nullopt, .seed = seed});

        RC_ASSERT(std::is_sorted(times.begin(), times.end()));
        RC_ASSERT(times.back() == 4'000'000'000);
    }));
}

TEST(Arrivals, InfiniteBurstinessIsAConstantGap) {
    const auto times = arrival_times_ns(
        4, {.rate = 10, .burstiness = std::numeric_limits<double>::infinity(), .ramp_up = std::nullopt});

    EXPECT_EQ(times, (std::vector<std::int64_t>{100'000'000, 200'000'000, 300'000'000, 400'000'000}));
}

TEST(Arrivals, PoissonGapsVaryAsMuchAsTheirMean) {
    const auto times = arrival_times_ns(20000, {.rate = 1000, .rescale = false, .ramp_up = std::nullopt});
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 1; i < times.size(); ++i) {
        const double gap = static_cast<double>(times[i] - times[i - 1]) / 1e6;
        sum += gap;
        squares += gap * gap;
    }
    const double n = static_cast<double>(times.size() - 1);
    const double mean = sum / n;

    EXPECT_NEAR(mean, 1.0, 0.03);
    EXPECT_NEAR(std::sqrt(squares / n - mean * mean), 1.0, 0.04);
}

TEST(Arrivals, RampUpSpeedsUp) {
    const auto times = arrival_times_ns(100, {.rate = 0,
                                              .burstiness = std::numeric_limits<double>::infinity(),
                                              .ramp_up = RampUp{.exponential = false, .start_rps = 1, .end_rps = 100}});

    EXPECT_GT(times[1] - times[0], 10 * (times[99] - times[98]));
}

TEST(DescriptorLimit, TooLowAHardLimitNamesTheCommand) {
    const auto refused = needed_soft_limit(512, {.soft = 256, .hard = 256});

    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::kResourceExhausted);
    EXPECT_NE(to_string(refused.error()).find("ulimit -Hn 576"), std::string::npos);
}

TEST(DescriptorLimit, RaisesOnlyWhatIsNeeded) {
    EXPECT_EQ(needed_soft_limit(512, {.soft = 1024, .hard = 4096}).value(), 1024);
    EXPECT_EQ(needed_soft_limit(2048, {.soft = 1024, .hard = 4096}).value(), 2112);
}

TEST(Target, ReadsHostPortAndPath) {
    const Target target = parse_base_url("http://10.0.0.7:8000/v2/").value();

    EXPECT_EQ(target.host, "10.0.0.7");
    EXPECT_EQ(target.port, 8000);
    EXPECT_EQ(target.path, "/v2");
    EXPECT_EQ(parse_base_url("http://[::1]:30000").value().host, "::1");
    EXPECT_EQ(parse_base_url("http://[::1]:30000").value().url(), "http://[::1]:30000");
    EXPECT_EQ(parse_base_url("localhost").value().port, 80);
}

TEST(Target, RefusesWhatItCannotReach) {
    for (const char* url : {"https://host", "http://", "http://host:99999", "http://host:x", "http://host:0"}) {
        EXPECT_FALSE(parse_base_url(url)) << url;
    }
}

Row text_row() {
    Row row;
    row.id = "m-000001";
    row.text = "a \"quoted\" prompt";
    row.ids = {1, 2, 3};
    row.in = 3;
    row.out = 7;
    return row;
}

TEST(RequestBody, EveryDialectSaysWhatTheManifestSays) {
    for (const Backend backend : {Backend::kOpenai, Backend::kOpenaiChat, Backend::kSglang}) {
        for (const PromptFormat format : {PromptFormat::kText, PromptFormat::kIds}) {
            if (backend == Backend::kOpenaiChat && format == PromptFormat::kIds) {
                continue;
            }
            const BodyOptions options{.backend = backend, .model = "m", .format = format};
            const auto body = build_body(text_row(), options);
            ASSERT_TRUE(body);

            const auto digest = digest_of_body("m-000001", body.value(), backend);

            ASSERT_TRUE(digest);
            EXPECT_EQ(digest.value(), expected_digest(text_row(), options)) << to_string(backend);
        }
    }
}

TEST(RequestBody, SamplingIsAlwaysWrittenOut) {
    const auto json = nlohmann::json::parse(build_body(text_row(), {.model = "m"}).value());

    EXPECT_EQ(json["temperature"], 0.0);
    EXPECT_EQ(json["top_p"], 1.0);
    EXPECT_EQ(json["top_k"], -1);
    EXPECT_EQ(json["ignore_eos"], true);
    EXPECT_EQ(json["min_tokens"], 7);
    EXPECT_EQ(json["stream_options"]["include_usage"], true);
}

TEST(RequestBody, AnotherPromptGivesAnotherDigest) {
    const BodyOptions options{.model = "m"};
    Row changed = text_row();
    changed.text += "!";
    const std::string body = build_body(changed, options).value();

    EXPECT_NE(digest_of_body("m-000001", body, Backend::kOpenai).value(), expected_digest(text_row(), options));
}

TEST(RequestBody, ExtraBodyMayNotTouchTheWork) {
    const auto refused = build_body(text_row(), {.model = "m", .extra_json = R"({"max_tokens":1})"});

    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what.find("max_tokens"), std::string::npos);
    EXPECT_TRUE(build_body(text_row(), {.model = "m", .extra_json = R"({"priority":1})"}));
}

TEST(ServerCounters, AreSummedOverRanks) {
    const auto counters = parse_counters(
        "# HELP x y\nsglang:prompt_tokens_total{rank=\"0\"} 10\nsglang:prompt_tokens_total{rank=\"1\"} 5\n"
        "sglang:generation_tokens_total 7.0\n");

    ASSERT_TRUE(counters);
    EXPECT_EQ(counters->prompt_tokens, 15);
    EXPECT_EQ(counters->generation_tokens, 7);
    EXPECT_FALSE(parse_counters("other 1\n"));
}

}  // namespace
}  // namespace megamoe::lab
