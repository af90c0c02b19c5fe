#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lab/cli.h"

namespace megamoe::lab {
namespace {

std::string error_of(std::vector<std::string> args) {
    args.insert(args.end(), {"--output-dir", "x"});
    const auto options = parse_bench_serve(args);
    return options ? std::string() : to_string(options.error());
}

TEST(ServeFlags, TheReproductionLineIsAcceptedAsItStands) {
    const auto parsed =
        parse_bench_serve({"--base-url", "http://127.0.0.1:30000", "--model", "/path/to/DeepSeek-V4-Pro",
                           "--trust-remote-code", "--input-len", "8192", "--output-len", "1024", "--num-prompts",
                           "5120", "--warmup-requests", "1024", "--max-concurrency", "512", "--prompt-manifest",
                           "/tmp/common_prompt_c512.jsonl.gz", "--output-dir", "/tmp/pr35619_arm1"});

    ASSERT_TRUE(parsed) << to_string(parsed.error());
    const BenchServeOptions& o = parsed.value();
    EXPECT_EQ(o.measure.target.url(), "http://127.0.0.1:30000");
    EXPECT_EQ(o.measure.backend, Backend::kOpenai);
    EXPECT_EQ(o.model, "/path/to/DeepSeek-V4-Pro");
    EXPECT_EQ(o.generate.dataset, "random");
    EXPECT_EQ(o.generate.input_len, 8192U);
    EXPECT_EQ(o.generate.output_len, 1024U);
    EXPECT_EQ(o.generate.num_prompts, 5120);
    EXPECT_EQ(o.generate.warmup_requests, 1024);
    EXPECT_EQ(o.generate.prompt_format, PromptFormat::kText);
    EXPECT_EQ(o.generate.sampling, (Sampling{.temperature = 0, .top_p = 1, .top_k = -1, .ignore_eos = true}));
    EXPECT_EQ(o.measure.max_concurrency, 512);
    EXPECT_FALSE(o.measure.arrivals);
    EXPECT_EQ(o.manifest_path, "/tmp/common_prompt_c512.jsonl.gz");
    EXPECT_EQ(o.output_dir, "/tmp/pr35619_arm1");
}

TEST(ServeFlags, AMistypedFlagGetsTheNearestName) {
    EXPECT_NE(error_of({"--num-promts", "5"}).find("did you mean --num-prompts?"), std::string::npos);
    EXPECT_NE(error_of({"--max-concurency=5"}).find("did you mean --max-concurrency?"), std::string::npos);
    EXPECT_NE(error_of({"--frobnicate"}).find("unknown flag --frobnicate"), std::string::npos);
    EXPECT_NE(error_of({"stray"}).find("unexpected word 'stray'"), std::string::npos);
}

TEST(ServeFlags, AFlagThatIsLeftOutOnPurposeSaysWhy) {
    EXPECT_NE(error_of({"--gsp-num-groups", "4"}).find("not supported: this kind of data set"), std::string::npos);
}

TEST(ServeFlags, AliasesOfOtherToolsMeanTheSame) {
    const auto parsed = parse_bench_serve({"--endpoint-type", "vllm-chat", "--random-input-len", "7",
                                           "--random-output-len", "9", "--num-warmups", "3", "--output-dir", "x"});

    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed.value().measure.backend, Backend::kOpenaiChat);
    EXPECT_EQ(parsed.value().generate.input_len, 7U);
    EXPECT_EQ(parsed.value().generate.output_len, 9U);
    EXPECT_EQ(parsed.value().generate.warmup_requests, 3);
    // Flags count under their first name, so that a manifest compares them whatever they were called.
    const auto& given = parsed.value().given;
    EXPECT_NE(std::find(given.begin(), given.end(), "input-len"), given.end());
}

TEST(ServeFlags, ARangeRatioWithoutItsMeaningIsRefusedWithBothMeanings) {
    const std::string text = error_of({"--input-len", "1000", "--random-range-ratio", "0.5"});

    EXPECT_NE(text.find("500 to 1000"), std::string::npos) << text;
    EXPECT_NE(text.find("500 to 1500"), std::string::npos) << text;
}

TEST(ServeFlags, RatesAndRampsBecomeArrivals) {
    const auto parsed = parse_bench_serve({"--request-rate", "4", "--burstiness", "inf", "--output-dir", "x"});

    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed.value().measure.arrivals->rate, 4);
    EXPECT_TRUE(error_of({"--request-rate", "-1"}).starts_with("--request-rate -1"));
    EXPECT_FALSE(error_of({"--ramp-up-strategy", "linear"}).empty());
    EXPECT_FALSE(error_of({"--arrival", "trace", "--max-concurrency", "2"}).empty());
}

TEST(ServeFlags, AConfigFileFillsInAndTheCommandLineWins) {
    const std::string path = testing::TempDir() + "mm_flags.json";
    std::ofstream(path)
        << R"({"input_len": 5, "max-concurrency": 9, "disable-tqdm": true, "goodput": ["ttft:10", "tpot:2"]})";

    const auto parsed = parse_bench_serve({"--config", path, "--input-len", "6", "--output-dir", "x"});

    ASSERT_TRUE(parsed) << to_string(parsed.error());
    EXPECT_EQ(parsed.value().generate.input_len, 6U);
    EXPECT_EQ(parsed.value().measure.max_concurrency, 9);
    EXPECT_TRUE(parsed.value().quiet);
    EXPECT_EQ(parsed.value().measure.goodput, (GoodputLimits{{"ttft", 10}, {"tpot", 2}}));
    std::ofstream(path) << R"({"inpt-len": 5})";
    EXPECT_NE(error_of({"--config", path}).find("did you mean --input-len?"), std::string::npos);
}

TEST(ServeFlags, ResolvedFlagsHoldDefaultsAndNoSecrets) {
    const auto parsed = parse_bench_serve({"--header", "X-Key: hunter2", "--output-dir", "x"});

    ASSERT_TRUE(parsed);
    const auto json = nlohmann::json::parse(parsed.value().flags_json);
    EXPECT_EQ(json["seed"], "42");
    EXPECT_EQ(parsed.value().flags_json.find("hunter2"), std::string::npos);
    EXPECT_EQ(parsed.value().measure.target.headers.front().second, "hunter2");
}

}  // namespace
}  // namespace megamoe::lab
