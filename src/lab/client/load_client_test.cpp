// The client against a server with a known schedule and known faults, in this process.
#include "lab/client/load_client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "lab/client/http_call.h"
#include "lab/client/null_server.h"
#include "lab/client/server_probe.h"
#include "lab/stats/request_metrics.h"

namespace megamoe::lab {
namespace {

class LoadClientTest : public ::testing::Test {
  protected:
    void serve(const NullServerOptions& options) {
        auto started = NullServer::start(options);
        ASSERT_TRUE(started) << to_string(started.error());
        server_ = std::move(started).take();
        target_.port = server_->port();
    }

    static std::vector<PlannedRequest> requests(int count, std::uint32_t tokens) {
        std::vector<PlannedRequest> out;
        for (int i = 0; i < count; ++i) {
            out.push_back(
                {.id = fmt::format("m-{:06}", i),
                 .body = fmt::format(R"({{"prompt":"a b c","max_tokens":{},"stream":true,)"
                                     R"("stream_options":{{"include_usage":true,"continuous_usage_stats":true}}}})",
                                     tokens),
                 .asked_in = 3,
                 .asked_out = tokens});
        }
        return out;
    }

    PassResult run(const std::vector<PlannedRequest>& planned, const PassOptions& options) {
        auto client = LoadClient::create(target_, "/v1/completions");
        EXPECT_TRUE(client);
        return client.value().run(planned, options);
    }

    static std::map<Outcome, int> outcomes(const PassResult& pass) {
        std::map<Outcome, int> count;
        for (const RequestRecord& record : pass.records) {
            ++count[record.outcome];
        }
        return count;
    }

    std::unique_ptr<NullServer> server_;
    Target target_;
};

TEST_F(LoadClientTest, EveryRequestIsServedOnceAndTimed) {
    serve({.tokens_per_chunk = 2, .role_chunk = true});
    PassOptions options;
    options.max_concurrency = 8;

    const PassResult pass = run(requests(100, 6), options);

    EXPECT_EQ(outcomes(pass), (std::map<Outcome, int>{{Outcome::kOk, 100}}));
    EXPECT_EQ(server_->stats().requests, 100);
    EXPECT_LE(server_->stats().peak_streams, 8);
    for (const RequestRecord& r : pass.records) {
        EXPECT_EQ(r.prompt_tokens, 3U);
        EXPECT_EQ(r.completion_tokens, 6U);
        EXPECT_EQ(r.chunks.size(), 3U);
        EXPECT_GT(r.t_sched, 0);
        EXPECT_LE(r.t_sched, r.t_slot);
        EXPECT_LE(r.t_slot, r.t_start);
        EXPECT_LE(r.t_start, r.t_sent);
        EXPECT_LE(r.t_sent, r.t_head);
        EXPECT_LE(r.t_head, r.t_role);
        EXPECT_LE(r.t_role, r.t_first);
        EXPECT_LE(r.t_first, r.t_last);
        EXPECT_LE(r.t_last, r.t_end);
    }
}

TEST_F(LoadClientTest, ConnectionsArePooled) {
    serve({});
    PassOptions options;
    options.max_concurrency = 4;

    run(requests(40, 2), options);

    EXPECT_LE(server_->stats().connections, 4);
}

TEST_F(LoadClientTest, OneConnectionARequestIfAskedFor) {
    serve({});
    PassOptions options;
    options.max_concurrency = 4;
    options.reuse_connections = false;

    const PassResult pass = run(requests(20, 2), options);

    EXPECT_EQ(outcomes(pass)[Outcome::kOk], 20);
    EXPECT_EQ(server_->stats().connections, 20);
}

TEST_F(LoadClientTest, BytesInPiecesChangeNothing) {
    serve({.split_bytes = 1});
    PassOptions options;
    options.max_concurrency = 2;

    const PassResult pass = run(requests(4, 3), options);

    EXPECT_EQ(outcomes(pass)[Outcome::kOk], 4);
}

TEST_F(LoadClientTest, AConnectionThatTheServerClosedIsReplacedBeforeTheClockStarts) {
    serve({.close_after = 3});
    PassOptions options;
    options.max_concurrency = 2;

    const PassResult pass = run(requests(30, 2), options);

    // The close may arrive after the request was written; then it counts as a failure and is never hidden by a second
    // try.
    EXPECT_GE(outcomes(pass)[Outcome::kOk], 20);
    EXPECT_EQ(outcomes(pass)[Outcome::kOk] + outcomes(pass)[Outcome::kConnError], 30);
}

TEST_F(LoadClientTest, EachFaultGetsItsNameAndCountsExactly) {
    serve({.fail_every = 5, .error_every = 7, .short_every = 11, .cut_every = 13});
    PassOptions options;
    options.max_concurrency = 1;
    options.max_error_rate = 1;

    const PassResult pass = run(requests(60, 4), options);

    auto count = outcomes(pass);
    EXPECT_EQ(count[Outcome::kHttpError], 12);
    EXPECT_EQ(count[Outcome::kServerAbort], 7);  // 7, 14, ..., 56 without 35
    EXPECT_EQ(count[Outcome::kTruncated], 4);    // 13, 26, 39, 52
    EXPECT_EQ(count[Outcome::kShort], 4);        // 11, 22, 33, 44 (55 failed with 500)
    EXPECT_EQ(server_->stats().requests, 60);    // nothing was sent twice
}

TEST_F(LoadClientTest, ErrorsBeyondTheRateSkipTheRest) {
    serve({.fail_every = 1});
    PassOptions options;
    options.max_concurrency = 4;

    const PassResult pass = run(requests(200, 2), options);

    EXPECT_TRUE(pass.gave_up);
    EXPECT_GE(outcomes(pass)[Outcome::kSkipped], 150);
    EXPECT_LE(server_->stats().requests, 40);
}

TEST_F(LoadClientTest, ASilentServerIsATimeoutNotAHang) {
    serve({.swallow_every = 1});
    PassOptions options;
    options.max_concurrency = 4;
    options.total_timeout_ms = 50;

    const PassResult pass = run(requests(4, 2), options);

    for (const RequestRecord& r : pass.records) {
        EXPECT_EQ(r.outcome, Outcome::kTimeout);
        EXPECT_EQ(r.detail, "total");
    }
}

TEST_F(LoadClientTest, AnIdleLimitIsNamedAsSuch) {
    serve({.swallow_every = 1});
    PassOptions options;
    options.idle_timeout_ms = 50;

    const PassResult pass = run(requests(1, 2), options);

    EXPECT_EQ(pass.records[0].outcome, Outcome::kTimeout);
    EXPECT_EQ(pass.records[0].detail, "idle");
}

TEST_F(LoadClientTest, NobodyListeningIsAConnectionError) {
    serve({});
    server_.reset();

    const PassResult pass = run(requests(3, 2), {});

    EXPECT_EQ(outcomes(pass)[Outcome::kConnError], 3);
}

TEST_F(LoadClientTest, OpenLoopKeepsItsScheduleWhateverTheServerDoes) {
    serve({});
    PassOptions options;
    options.open_loop = true;
    options.release_ns = {0, 1'000'000, 2'000'000, 30'000'000};

    const PassResult pass = run(requests(4, 2), options);

    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(pass.records[i].t_sched, pass.t_begin_ns + options.release_ns[i]);
        EXPECT_GE(pass.records[i].t_slot, pass.records[i].t_sched);
    }
}

TEST_F(LoadClientTest, ACapInOpenLoopShowsAsQueueing) {
    serve({.ttft_ms = 20});
    PassOptions options;
    options.open_loop = true;
    options.release_ns = {0, 0, 0};
    options.max_concurrency = 1;

    const PassResult pass = run(requests(3, 1), options);

    // Measured from the intended start: the third request waited for two others.
    const RequestMetrics third = request_metrics(pass.records[2]);
    EXPECT_GE(*third.ttft_user, *third.ttft + 39);
    EXPECT_GE(*third.queue, 39);
}

TEST_F(LoadClientTest, ProgrammedTimesAreRecovered) {
    serve({.ttft_ms = 30, .gap_ms = 5, .tokens_per_chunk = 2});
    PassOptions options;
    options.max_concurrency = 16;

    const PassResult pass = run(requests(16, 12), options);

    for (const RequestRecord& r : pass.records) {
        const RequestMetrics m = request_metrics(r);
        // One-sided: a busy machine delays, it never hurries.
        EXPECT_GE(*m.ttft, 29.9);
        EXPECT_EQ(m.icl.size(), 5U);
        EXPECT_DOUBLE_EQ(*m.merge, 2);
    }
}

TEST_F(LoadClientTest, FiveHundredStreamsRunAtOnce) {
    serve({.hold_until_streams = 500});
    auto client = LoadClient::create(target_, "/v1/completions");
    ASSERT_TRUE(client);
    client.value().open_connections(500, 5000);
    PassOptions options;
    options.max_concurrency = 500;

    const PassResult pass = client.value().run(requests(500, 3), options);

    EXPECT_EQ(outcomes(pass)[Outcome::kOk], 500);
    EXPECT_EQ(server_->stats().peak_streams, 500);
    EXPECT_EQ(server_->stats().connections, 500);
    for (const RequestRecord& r : pass.records) {
        EXPECT_EQ(r.t_conn0, 0);  // connected before the clock
    }
}

TEST_F(LoadClientTest, CallsOutsideTheClockReadAnswersAndGiveUpInTime) {
    serve({.swallow_every = 1});

    EXPECT_EQ(first_model(target_).value(), "null");
    EXPECT_EQ(call(target_, {.endpoint = "/health"}).value().status, 200);
    EXPECT_TRUE(flush_cache(target_));
    const auto silent =
        call(target_, {.method = "POST", .endpoint = "/v1/completions", .body = R"({"prompt":"a"})", .timeout_ms = 50});
    ASSERT_FALSE(silent);
    EXPECT_NE(silent.error().what.find("no answer within 50 ms"), std::string::npos);
    server_.reset();
    EXPECT_FALSE(call(target_, {.endpoint = "/health"}));
}

}  // namespace
}  // namespace megamoe::lab
