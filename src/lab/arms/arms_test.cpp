// Server processes and interleaved runs. The child is a shell that logs the address of a null server in this process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "lab/arms/ab_run.h"
#include "lab/arms/server_process.h"
#include "lab/client/null_server.h"
#include "lab/core/files.h"
#include "lab/manifest/manifest_file.h"
#include "lab/report/html_report.h"

namespace megamoe::lab {
namespace {

namespace fs = std::filesystem;

class ArmsTest : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("mm_arms_" + std::to_string(::getpid()));
        fs::remove_all(folder_);
        fs::create_directories(folder_);
        server_ = NullServer::start({}).take();
    }
    void TearDown() override { fs::remove_all(folder_); }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

    static std::vector<std::string> shell(const std::string& script) { return {"/bin/sh", "-c", script}; }
    // Looks like a server that listens where the null server does, and ends as `on_term` says.
    std::vector<std::string> pretender(const std::string& on_term = "exit 0") const {
        return shell("trap '" + on_term + "' TERM; echo listening on http://0.0.0.0:" +
                     std::to_string(server_->port()) + " now; sleep 1000 & wait");
    }

    static Manifest manifest(int measured) {
        Manifest m;
        m.format = PromptFormat::kText;
        for (int i = -2; i < measured; ++i) {
            Row& row = m.rows.emplace_back();
            row.role = i == -2 ? Role::kCanary : i == -1 ? Role::kWarmup : Role::kMeasure;
            row.i = std::max(i, 0);
            row.id = std::string(1, to_string(row.role)[0]) + std::to_string(i);
            row.text = "prompt number " + std::to_string(i);
            row.in = 3;
            row.out = 4;
        }
        return m;
    }

    AbOptions options(int repeats) const {
        AbOptions ab;
        ab.arms = {{"one", pretender()}, {"two", pretender()}};
        ab.repeats = repeats;
        ab.measure.num_prompts = 6;
        ab.measure.warmup_requests = 1;
        ab.measure.max_concurrency = 2;
        ab.measure.usage = StreamUsage::kContinuous;
        ab.output_dir = folder_.string();
        ab.grace_ms = 5000;
        return ab;
    }

    fs::path folder_;
    std::unique_ptr<NullServer> server_;
};

TEST_F(ArmsTest, AServerIsReadyWhenItsHealthAnswersAndStopsOnTerm) {
    auto process = ServerProcess::start(pretender(), path("log"));
    ASSERT_TRUE(process);

    const auto target = process.value().wait_ready(10000, nullptr);

    ASSERT_TRUE(target) << to_string(target.error());
    EXPECT_EQ(target.value().port, server_->port());
    EXPECT_EQ(target.value().host, "127.0.0.1");
    EXPECT_TRUE(process.value().is_running());
    EXPECT_TRUE(process.value().stop(5000));
    EXPECT_FALSE(process.value().is_running());
}

TEST_F(ArmsTest, AServerThatDiesEarlyIsReportedWithItsLastWords) {
    auto process = ServerProcess::start(shell("echo first; echo cannot bind the port; exit 3"), path("log"));
    ASSERT_TRUE(process);

    const auto ready = process.value().wait_ready(60000, nullptr);

    ASSERT_FALSE(ready);
    EXPECT_NE(ready.error().what.find("exit code 3"), std::string::npos);
    EXPECT_NE(ready.error().what.find("cannot bind the port"), std::string::npos);
}

TEST_F(ArmsTest, ABadEndIsNotHidden) {
    auto process = ServerProcess::start(pretender("exit 7"), path("log"));
    ASSERT_TRUE(process);
    ASSERT_TRUE(process.value().wait_ready(10000, nullptr));

    const auto stopped = process.value().stop(5000);

    ASSERT_FALSE(stopped);
    EXPECT_NE(stopped.error().what.find("exit code 7"), std::string::npos) << stopped.error().what;
}

TEST_F(ArmsTest, AProgramThatDoesNotExistIsNamed) {
    const auto process = ServerProcess::start({"/no/such/program"}, path("log"));

    ASSERT_FALSE(process);
    EXPECT_NE(process.error().what.find("/no/such/program"), std::string::npos);
}

TEST_F(ArmsTest, LastLogLinesAreTheLastOnes) {
    auto process = ServerProcess::start(shell("for i in 1 2 3 4; do echo line $i; done"), path("log"));
    ASSERT_TRUE(process);
    ASSERT_FALSE(process.value().wait_ready(10000, nullptr));

    EXPECT_EQ(process.value().last_log_lines(2), "line 3\nline 4");
    EXPECT_EQ(process.value().last_log_lines(99), "line 1\nline 2\nline 3\nline 4");
}

TEST(FindAddress, ReadsTheWordsOfSeveralServers) {
    EXPECT_EQ(find_address("INFO: Uvicorn running on http://0.0.0.0:30000 (Press").value().port, 30000);
    EXPECT_EQ(find_address("event=ready url=http://127.0.0.1:41234 ranks=2\n").value().port, 41234);
    EXPECT_EQ(find_address("see http://docs for help\nat http://[::1]:7\n").value().host, "::1");
    EXPECT_FALSE(find_address("at http://127.0.0.1:412"));  // may go on
    EXPECT_FALSE(find_address("nothing"));
}

TEST(OrderInBlock, TurnsRoundEveryBlock) {
    EXPECT_EQ(order_in_block(2, 0), (std::vector<std::size_t>{0, 1}));
    EXPECT_EQ(order_in_block(2, 1), (std::vector<std::size_t>{1, 0}));
    EXPECT_EQ(order_in_block(3, 1), (std::vector<std::size_t>{2, 1, 0}));
}

TEST_F(ArmsTest, RunsAreInterleavedAndEachLeavesItsEvidence) {
    Manifest m = manifest(6);
    ASSERT_TRUE(write_manifest(m, path("m.jsonl.gz")));
    AbOptions ab = options(3);
    ab.manifest_path = path("m.jsonl.gz");
    Experiment experiment;

    const auto done = run_arms(ab, m, experiment);

    ASSERT_TRUE(done) << to_string(done.error());
    std::vector<std::size_t> order;
    for (const ExperimentRun& run : experiment.runs) {
        order.push_back(run.arm);
        EXPECT_TRUE(run.checks.valid());
    }
    EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 1, 0, 0, 1}));
    for (const char* run : {"01-one", "02-two", "03-two", "04-one", "05-one", "06-two"}) {
        const auto json = nlohmann::json::parse(read_file(path(std::string("runs/") + run + "/result.json")).value());
        EXPECT_EQ(json["counts"]["ok"], 6);
        EXPECT_EQ(json["manifest"]["content_sha256"], m.content_sha256);
    }
    EXPECT_EQ(server_->stats().requests, 6 * (1 + 1 + 6));
    const auto comparison = compare_figure(experiment, 0, 1, figures().front());
    ASSERT_TRUE(comparison);
    EXPECT_EQ(comparison->pairs, 3U);
    EXPECT_NE(comparison->verdict, Verdict::kTooFewRuns);
}

TEST_F(ArmsTest, TheReportStandsAloneAndSaysWhenNothingCanBeSaid) {
    Manifest m = manifest(6);
    AbOptions ab = options(1);
    ab.arms[1].name = "two&more";
    Experiment experiment;
    ASSERT_TRUE(run_arms(ab, m, experiment));

    const std::string html = html_report(experiment);

    EXPECT_NE(html.find("No verdict possible"), std::string::npos);
    EXPECT_NE(html.find("two&amp;more"), std::string::npos);
    EXPECT_EQ(html.find("<script"), std::string::npos);
    EXPECT_EQ(html.find("src="), std::string::npos);
    EXPECT_EQ(html.find("nan"), std::string::npos);
    EXPECT_NE(experiment_table(experiment).find("request throughput"), std::string::npos);
    EXPECT_TRUE(nlohmann::json::accept(experiment_json(experiment)));
}

TEST_F(ArmsTest, AnInvalidRunIsLeftOutOfEveryFigure) {
    Experiment experiment;
    experiment.arms = {{"a", ""}, {"b", ""}};
    for (int block = 1; block <= 2; ++block) {
        for (std::size_t arm = 0; arm < 2; ++arm) {
            ExperimentRun& run = experiment.runs.emplace_back();
            run.arm = arm;
            run.block = block;
            run.measured.metrics.throughput =
                Throughput{.req_s = 10.0 * block, .in_tok_s = 1, .out_tok_s = 1, .total_tok_s = 2};
            run.checks = {.complete = !(arm == 1 && block == 2), .same_prompts = true, .lengths = true};
        }
    }

    EXPECT_EQ(arm_values(experiment, 0, figures().front()), (std::vector<double>{10, 20}));
    EXPECT_EQ(arm_values(experiment, 1, figures().front()), (std::vector<double>{10}));
    EXPECT_EQ(compare_figure(experiment, 0, 1, figures().front())->pairs, 1U);
}

}  // namespace
}  // namespace megamoe::lab
