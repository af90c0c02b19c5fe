#include "lab/run/measure.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "lab/cli.h"
#include "lab/client/null_server.h"
#include "lab/core/files.h"
#include "lab/core/sha256.h"
#include "lab/manifest/generate.h"
#include "lab/manifest/manifest_file.h"
#include "lab/report/run_facts.h"

namespace megamoe::lab {
namespace {

namespace fs = std::filesystem;

// As the null server counts: one token a word.
class WordTokens final : public TokenSource {
  public:
    const TokenizerIdentity& identity() const override { return identity_; }
    bool is_special(std::uint32_t id) const override { return id == 0; }
    std::vector<std::uint32_t> encode(std::string_view text) const override {
        std::istringstream words{std::string(text)};
        std::vector<std::uint32_t> ids;
        for (std::string word; words >> word;) {
            ids.push_back(static_cast<std::uint32_t>(std::stoul(word.substr(1))));
        }
        return ids;
    }
    std::string decode(std::span<const std::uint32_t> ids) const override {
        std::string text;
        for (const std::uint32_t id : ids) {
            text += "t" + std::to_string(id) + " ";
        }
        return text;
    }

  private:
    TokenizerIdentity identity_{.name = "words", .files_sha256 = "test", .vocab = 500, .adds_bos = false};
};

Result<std::unique_ptr<TokenSource>> load_words(const std::string&) {
    return std::unique_ptr<TokenSource>(std::make_unique<WordTokens>());
}

class MeasureTest : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("mm_measure_" + std::to_string(::getpid()));
        fs::remove_all(folder_);
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    void serve(const NullServerOptions& options) { server_ = NullServer::start(options).take(); }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

    int bench(std::vector<std::string> more, const std::string& output = "out") {
        std::vector<std::string> args{"--base-url",
                                      url(),
                                      "--model",
                                      "/models/null",
                                      "--input-len",
                                      "12",
                                      "--output-len",
                                      "4",
                                      "--num-prompts",
                                      "20",
                                      "--seed",
                                      "7",
                                      "--output-dir",
                                      path(output),
                                      "--max-concurrency",
                                      "4",
                                      "--disable-tqdm",
                                      "--warmup-requests",
                                      "5"};
        args.insert(args.end(), more.begin(), more.end());
        const auto options = parse_bench_serve(args);
        EXPECT_TRUE(options) << to_string(options.error());
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        const int exit = run_bench_serve(options.value(), load_words);
        stdout_ = testing::internal::GetCapturedStdout();
        stderr_ = testing::internal::GetCapturedStderr();
        return exit;
    }
    nlohmann::json result(const std::string& output = "out") const {
        return nlohmann::json::parse(read_file(path(output + "/result.json")).value());
    }

    fs::path folder_;
    std::unique_ptr<NullServer> server_;
    std::string stdout_;
    std::string stderr_;
};

TEST_F(MeasureTest, ACleanRunWritesItsEvidenceAndExitsZero) {
    serve({.tokens_per_chunk = 2});

    ASSERT_EQ(bench({"--stream-usage", "continuous", "--output-file", path("lines.jsonl"), "--emit", "sglang,vllm"}), 0)
        << stderr_;

    const auto json = result();
    EXPECT_EQ(json["counts"]["ok"], 20);
    EXPECT_EQ(json["counts"]["warmup_ok"], 5);
    EXPECT_EQ(json["tokens"]["in"], 240);
    EXPECT_EQ(json["tokens"]["out"], 80);
    EXPECT_EQ(json["latency_ms"]["itl"]["basis"], "counted");
    EXPECT_EQ(json["concurrency"]["peak"], 4);
    EXPECT_EQ(json["valid"], true);
    EXPECT_TRUE(json["eplb"].is_null());
    for (const std::string name : {"requests.jsonl", "client.json", "command.txt", "env.json", "SHA256SUMS"}) {
        EXPECT_TRUE(fs::exists(path("out/" + name))) << name;
    }
    EXPECT_EQ(server_->stats().requests, 1 + 5 + 20);  // ready check, warm-up, measured
    const std::string lines = read_file(path("lines.jsonl")).value();
    EXPECT_NE(lines.find("\"total_throughput\""), std::string::npos);
    EXPECT_NE(lines.find("\"total_token_throughput\""), std::string::npos);
}

TEST_F(MeasureTest, NoFileHoldsTheValueOfAHeader) {
    serve({});
    ASSERT_EQ(bench({"--header", "X-Key: hunter2", "--header=Other:hunter2"}), 0) << stderr_;

    for (const auto& entry : fs::recursive_directory_iterator(path("out"))) {
        if (entry.is_regular_file()) {
            EXPECT_EQ(read_file(entry.path().string()).value().find("hunter2"), std::string::npos) << entry.path();
        }
    }
}

TEST_F(MeasureTest, SumsOfTheFolderAreRight) {
    serve({});
    ASSERT_EQ(bench({}), 0) << stderr_;

    std::istringstream sums(read_file(path("out/SHA256SUMS")).value());
    int files = 0;
    for (std::string line; std::getline(sums, line); ++files) {
        EXPECT_EQ(sha256_of_file(path("out/" + line.substr(66))).value(), line.substr(0, 64));
    }
    EXPECT_GE(files, 5);
}

TEST_F(MeasureTest, ASecondArmReplaysTheFirstArmsManifest) {
    serve({});
    const std::vector<std::string> manifest{"--prompt-manifest", path("m.jsonl.gz")};
    ASSERT_EQ(bench(manifest, "arm1"), 0) << stderr_;
    ASSERT_EQ(bench(manifest, "arm2"), 0) << stderr_;

    EXPECT_NE(stdout_.find("(verified)"), std::string::npos);
    for (const char* hash : {"content_sha256", "prompts_sha256", "replay_sha256"}) {
        EXPECT_EQ(result("arm1")["manifest"][hash], result("arm2")["manifest"][hash]) << hash;
    }
}

TEST_F(MeasureTest, FlagsThatContradictTheManifestExitSixWithADiff) {
    serve({});
    ASSERT_EQ(bench({"--prompt-manifest", path("m.jsonl.gz")}, "arm1"), 0) << stderr_;

    EXPECT_EQ(bench({"--prompt-manifest", path("m.jsonl.gz"), "--output-len", "5"}, "arm2"), 6);

    EXPECT_NE(stderr_.find("--output-len: manifest 4, asked 5"), std::string::npos) << stderr_;
}

TEST_F(MeasureTest, ADamagedManifestExitsSix) {
    serve({});
    std::ofstream(path("m.jsonl.gz")) << "garbage\n";

    EXPECT_EQ(bench({"--prompt-manifest", path("m.jsonl.gz")}), 6);
}

TEST_F(MeasureTest, FewerPromptsThanTheManifestHasAreMarked) {
    serve({});
    ASSERT_EQ(bench({"--prompt-manifest", path("m.jsonl.gz")}, "arm1"), 0) << stderr_;
    ASSERT_EQ(bench({"--prompt-manifest", path("m.jsonl.gz"), "--num-prompts", "10"}, "arm2"), 0) << stderr_;
    EXPECT_EQ(bench({"--prompt-manifest", path("m.jsonl.gz"), "--num-prompts", "21"}, "arm3"), 1);

    EXPECT_EQ(result("arm1")["flags"]["partial_manifest"], false);
    EXPECT_EQ(result("arm2")["flags"]["partial_manifest"], true);
}

TEST_F(MeasureTest, AnyFailedRequestExitsThree) {
    serve({.fail_every = 9});

    EXPECT_EQ(bench({"--max-error-rate", "1", "--warmup-requests", "0"}), 3);

    EXPECT_EQ(result()["counts"]["by_outcome"]["http_error"], 2);
    EXPECT_EQ(result()["valid"], false);
    EXPECT_NE(stderr_.find("2 request(s) failed"), std::string::npos) << stderr_;
}

TEST_F(MeasureTest, AFailedWarmUpStopsTheRun) {
    serve({.fail_every = 3});

    EXPECT_EQ(bench({}), 3);

    EXPECT_EQ(result()["counts"]["sent"], 0);
}

TEST_F(MeasureTest, AServerThatCountsOneTokenMoreIsNoticedBeforeTheRun) {
    serve({.extra_prompt_tokens = 1});

    EXPECT_EQ(bench({}), 6);

    EXPECT_NE(stderr_.find("--bos-policy counted"), std::string::npos) << stderr_;
    EXPECT_EQ(server_->stats().requests, 1);
}

TEST_F(MeasureTest, NoServerExitsFour) {
    serve({});
    const std::string gone = url();
    server_.reset();
    const auto options =
        parse_bench_serve({"--base-url", gone, "--model", "m", "--output-dir", path("out"), "--num-prompts", "2",
                           "--input-len", "4", "--ready-check-timeout-sec", "0.1"});
    ASSERT_TRUE(options);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();

    EXPECT_EQ(run_bench_serve(options.value(), load_words), 4);

    testing::internal::GetCapturedStdout();
    EXPECT_NE(testing::internal::GetCapturedStderr().find("did not complete one 1-token generation"),
              std::string::npos);
}

TEST_F(MeasureTest, AFolderWithResultsIsNeverOverwritten) {
    serve({});
    ASSERT_EQ(bench({}), 0) << stderr_;

    EXPECT_EQ(bench({}), 1);

    EXPECT_NE(stderr_.find("is not empty"), std::string::npos);
}

TEST_F(MeasureTest, WithoutUsageTheFiguresAreMarkedAsNotComparable) {
    serve({.usage = false});

    EXPECT_EQ(bench({}), 2);

    EXPECT_EQ(result()["tokens"]["basis"], "requested");
}

TEST_F(MeasureTest, RollingWarmUpSharesOnePass) {
    serve({});

    ASSERT_EQ(bench({"--warmup-mode", "rolling"}), 0) << stderr_;

    EXPECT_EQ(result()["counts"]["warmup_ok"], 5);
    EXPECT_EQ(result()["counts"]["ok"], 20);
}

TEST_F(MeasureTest, EveryBackendAndFormatRuns) {
    serve({});
    EXPECT_EQ(bench({"--backend", "sglang"}, "a"), 0) << stderr_;
    EXPECT_EQ(bench({"--backend", "openai-chat"}, "b"), 0) << stderr_;
    EXPECT_EQ(bench({"--prompt-format", "ids"}, "c"), 0) << stderr_;
    EXPECT_EQ(bench({"--disable-stream"}, "d"), 0) << stderr_;
    EXPECT_EQ(bench({"--request-rate", "2000"}, "e"), 0) << stderr_;

    EXPECT_TRUE(result("d")["latency_ms"]["ttft"]["mean"].is_null());
    EXPECT_FALSE(result("d")["latency_ms"]["e2el"]["mean"].is_null());
    EXPECT_EQ(result("e")["latency_base"], "user");
}

}  // namespace
}  // namespace megamoe::lab
