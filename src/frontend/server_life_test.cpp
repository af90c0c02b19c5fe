// Many clients, clients that leave or stall, engines that fail, and the end.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "frontend/testing/server_fixture.h"

namespace megamoe::frontend::testing {
namespace {

using ServerLife = ServerTest;

TEST_F(ServerLife, ManyStreamsAtOnceAllGetTheirOwnText) {
    constexpr int kStreams = 512;
    start();
    std::vector<TestClient> clients;
    for (int i = 0; i < kStreams; ++i) {
        clients.push_back(connect());
        clients.back().post("/v1/completions", R"({"prompt":[)" + std::to_string(100 + i) + "," +
                                                   std::to_string(700 + i) + R"(],"max_tokens":16,"stream":true})");
    }
    backend_.wait_submitted(kStreams);
    EXPECT_EQ(backend_.num_live(), static_cast<std::size_t>(kStreams)) << "all are served at the same time";
    backend_.run();

    for (int i = 0; i < kStreams; ++i) {
        std::vector<std::int32_t> ids;
        for (int token = 0; token < 16; ++token) {
            ids.push_back((token % 2 == 0 ? 100 : 700) + i);
        }
        const Reply reply = clients[static_cast<std::size_t>(i)].receive();
        EXPECT_TRUE(reply.is_whole);
        EXPECT_EQ(text_of(reply), mini()->decode(ids, true)) << "stream " << i;
        EXPECT_EQ(reply.events().back(), "[DONE]");
    }
}

TEST_F(ServerLife, AClosedConnectionAbortsAllItsChoices) {
    start();
    TestClient client = connect();
    client.post("/v1/completions", R"({"prompt":"a","n":3,"max_tokens":400,"stream":true})");
    backend_.wait_submitted(3);
    backend_.step();
    ASSERT_TRUE(client.fill_until("data: "));

    client.close();

    backend_.wait_aborted(3);
    EXPECT_EQ(backend_.num_live(), 0U);
}

TEST_F(ServerLife, AClientThatLeavesBeforeTheFirstTokenAbortsToo) {
    start();
    TestClient client = connect();
    client.post("/v1/completions", R"({"prompt":"a","max_tokens":400})");
    backend_.wait_submitted(1);

    client.reset();

    backend_.wait_aborted(1);
}

TEST_F(ServerLife, ASlowReaderGetsFewerEventsAndTheWholeText) {
    constexpr int kTokens = 60000;
    auto started = Server::start({.port = 0}, backend_, mini(),
                                 {.served_name = "mini",
                                  .model_path = "mini",
                                  .context_length = 1 << 20,
                                  .vocab_size = mini()->vocab_size(),
                                  .num_ranks = 2});
    ASSERT_TRUE(started);
    server_ = std::move(started).take();
    TestClient client(server_->port(), /*receive_buffer=*/4096);
    client.post("/v1/completions",
                R"({"prompt":"one two three","stream":true,"max_tokens":)" + std::to_string(kTokens) + "}");
    backend_.wait_submitted(1);

    while (backend_.step()) {  // the engine is never held up
    }

    const Reply reply = client.receive();
    const auto prompt = mini()->encode("one two three");
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < kTokens; ++i) {
        ids.push_back(prompt[i % prompt.size()]);
    }
    EXPECT_TRUE(reply.is_whole);
    EXPECT_LT(reply.events().size(), static_cast<std::size_t>(kTokens) / 2);
    EXPECT_EQ(text_of(reply), mini()->decode(ids, true));
}

TEST_F(ServerLife, ManyRequestsOnOneConnectionInOneWrite) {
    start_running();
    TestClient client = connect();
    const std::string body = R"({"prompt":"x","max_tokens":1})";
    const std::string one =
        "POST /v1/completions HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;

    client.send(one + one + "GET /health HTTP/1.1\r\n\r\n");

    EXPECT_EQ(client.receive().status, 200);
    EXPECT_EQ(client.receive().status, 200);
    EXPECT_TRUE(client.receive().has("ready"));
}

TEST_F(ServerLife, AnEngineErrorIsAStatusBeforeTheFirstTokenAndAnEventAfterIt) {
    start();
    TestClient early = connect();
    TestClient late = connect();
    late.post("/v1/completions", R"({"prompt":"a","max_tokens":400,"stream":true})");
    backend_.wait_submitted(1);
    backend_.step();
    ASSERT_TRUE(late.fill_until("data: "));
    early.post("/v1/completions", R"({"prompt":"a","max_tokens":400,"stream":true})");
    backend_.wait_submitted(2);

    backend_.fail("rank 1 lost its device");

    const Reply refused = early.receive();
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(error_of(refused), "rank 1 lost its device");
    const auto events = late.receive().events();
    ASSERT_GE(events.size(), 3U);
    EXPECT_EQ(json::parse(events[events.size() - 2])["error"]["message"], "rank 1 lost its device");
    EXPECT_EQ(events.back(), "[DONE]");
    EXPECT_EQ(get("/health").status, 503);
}

TEST_F(ServerLife, AFullQueueIs503WithAHintWhenToRetry) {
    start();
    backend_.refuse_with({Errc::kResourceExhausted, "the queue holds 4096 requests", "retry later"});

    const Reply reply = post("/v1/completions", R"({"prompt":"a"})");

    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.header("Retry-After"), "1");
    EXPECT_EQ(error_of(reply), "the queue holds 4096 requests (retry later)");
}

TEST_F(ServerLife, DrainingFinishesWhatIsLiveAndRefusesTheRest) {
    start();
    TestClient live = connect();
    live.post("/v1/completions", R"({"prompt":"one","max_tokens":4,"stream":true})");
    backend_.wait_submitted(1);
    TestClient second = connect();

    std::thread stopping([this] { server_->stop(/*drain_ms=*/60000); });
    Reply health;
    do {
        second.get("/health");
        health = second.receive();
    } while (health.status == 200);
    EXPECT_EQ(error_of(health), "the server is shutting down");
    second.post("/v1/completions", R"({"prompt":"a"})");
    EXPECT_EQ(second.receive().status, 503);
    while (backend_.step()) {
    }
    stopping.join();

    const Reply reply = live.receive();
    EXPECT_TRUE(reply.is_whole);
    EXPECT_EQ(reply.events().back(), "[DONE]");
    EXPECT_TRUE(live.is_at_end());
}

TEST_F(ServerLife, WhatIsLeftAfterTheDrainIsToldSo) {
    start();
    TestClient streaming = connect();
    streaming.post("/v1/completions", R"({"prompt":"one","max_tokens":400,"stream":true})");
    backend_.wait_submitted(1);
    backend_.step();
    ASSERT_TRUE(streaming.fill_until("data: "));
    TestClient waiting = connect();
    waiting.post("/v1/completions", R"({"prompt":"one","max_tokens":400})");
    backend_.wait_submitted(2);

    server_->stop(/*drain_ms=*/0);

    EXPECT_EQ(waiting.receive().status, 503);
    const auto events = streaming.receive().events();
    EXPECT_EQ(json::parse(events[events.size() - 2])["error"]["code"], "draining");
    EXPECT_EQ(backend_.num_live(), 0U);
}

TEST_F(ServerLife, ASignalDrainsAndASecondOneCutsShort) {
    start({.drain_timeout_ms = 600000});
    TestClient client = connect();
    client.post("/v1/completions", R"({"prompt":"one","max_tokens":400})");
    backend_.wait_submitted(1);
    TestClient watcher = connect();

    Result<Done> ended = invalid("still running");
    const auto old = std::signal(SIGTERM, SIG_IGN);  // until the server listens to it
    std::thread running([&] { ended = server_->run_until_signal(); });
    Reply health;
    do {
        ::raise(SIGTERM);  // lost if the server does not listen yet; one that arrived shows within a few answers
        for (int i = 0; i < 1000 && health.status != 503; ++i) {
            watcher.get("/health");
            health = watcher.receive();
        }
    } while (health.status != 503);
    ::raise(SIGTERM);
    running.join();
    std::signal(SIGTERM, old);

    EXPECT_TRUE(ended);
    EXPECT_EQ(client.receive().status, 503);
}

TEST_F(ServerLife, AFailedEngineEndsTheServer) {
    start();
    backend_.fail("rank 0 stopped");

    const auto ended = server_->run_until_signal();

    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Errc::kUnavailable);
    EXPECT_EQ(ended.error().what, "the engine failed: rank 0 stopped");
}

TEST_F(ServerLife, AnAbortedRequestAnswersWithWhatItHas) {
    start();
    TestClient client = connect();
    client.post("/v1/completions", R"({"prompt":"one two","max_tokens":400,"rid":"job-1"})");
    backend_.wait_submitted(1);
    backend_.step();

    EXPECT_EQ(body_of(post("/abort_request", R"({"rid":"job"})"))["aborted"], 0) << "a prefix is not a name";
    EXPECT_EQ(body_of(post("/abort_request", R"({"rid":"job-1"})"))["aborted"], 1);

    const json answer = body_of(client.receive());
    EXPECT_EQ(answer["id"], "job-1");
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "abort");
    EXPECT_EQ(answer["usage"]["completion_tokens"], 1);
}

TEST_F(ServerLife, TwoLiveRequestsCannotShareAName) {
    start();
    TestClient first = connect();
    first.post("/v1/completions", R"({"prompt":"a","max_tokens":4,"rid":"same"})");
    backend_.wait_submitted(1);

    EXPECT_EQ(error_of(post("/v1/completions", R"({"prompt":"a","rid":"same"})")),
              "rid 'same' is in use by a live request");
}

TEST_F(ServerLife, OptionsOutOfRangeAreRefused) {
    const auto started = Server::start({.max_connections = 0}, backend_, mini(),
                                       {.served_name = "m", .context_length = 1, .vocab_size = 1});

    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace megamoe::frontend::testing
