// Health, descriptions, keys and refusals.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/testing/server_fixture.h"

namespace megamoe::frontend::testing {
namespace {

using ServerRoutes = ServerTest;

TEST_F(ServerRoutes, HealthFollowsTheEngine) {
    start();
    backend_.set_phase(router::Phase::kStarting);
    EXPECT_EQ(get("/health").status, 503);
    EXPECT_EQ(error_of(get("/health")), "the model is still loading");
    EXPECT_EQ(get("/liveness").status, 200);
    EXPECT_EQ(post("/v1/completions", R"({"prompt":"a"})").status, 503);

    backend_.set_phase(router::Phase::kReady);

    EXPECT_EQ(get("/health").status, 200);
}

TEST_F(ServerRoutes, AHealthProbeGeneratesOnTheRankItNames) {
    start_running();

    EXPECT_EQ(get("/health_generate?dp_rank=1").status, 200);
    EXPECT_EQ(get("/health_generate").status, 200);

    const auto requests = backend_.wait_submitted(3);
    EXPECT_EQ(requests[0].routed_rank, 1);
    EXPECT_EQ(requests[1].routed_rank, 0);
    EXPECT_EQ(requests[2].routed_rank, 1);
    EXPECT_EQ(error_of(get("/health_generate?dp_rank=2")), "dp_rank is '2', must be in [0, 1]");
}

TEST_F(ServerRoutes, KnowsItsModelByThreeNames) {
    start_running();

    for (const std::string name : {"mini", "models/mini-v4", "mini-v4"}) {
        EXPECT_EQ(post("/v1/completions", R"({"prompt":"a","max_tokens":1,"model":")" + name + "\"}").status, 200);
    }
    EXPECT_EQ(get("/v1/models/models%2Fmini-v4").status, 200);
    const Reply unknown = post("/v1/completions", R"({"prompt":"a","model":"gpt"})");
    EXPECT_EQ(unknown.status, 404);
    EXPECT_EQ(json::parse(unknown.body)["error"],
              (json{{"message", "the model 'gpt' does not exist; this server has 'mini'"},
                    {"type", "invalid_request_error"},
                    {"param", "model"},
                    {"code", "model_not_found"}}));
    EXPECT_EQ(body_of(get("/v1/models"))["data"][0]["max_model_len"], 512);
}

TEST_F(ServerRoutes, RoutesMethodsAndTypesAreRefusedInOneShape) {
    start();

    const Reply missing = get("/v2/nothing");
    EXPECT_EQ(missing.status, 404);
    EXPECT_EQ(error_of(missing), "there is no route /v2/nothing");
    const Reply method = get("/v1/completions");
    EXPECT_EQ(method.status, 405);
    EXPECT_EQ(method.header("Allow"), "POST, OPTIONS");
    EXPECT_EQ(error_of(method), "/v1/completions takes POST, not GET");
    TestClient form = connect();
    form.send(
        "POST /v1/completions HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        "Content-Length: 2\r\n\r\n{}");
    EXPECT_EQ(form.receive().status, 415);
    TestClient options = connect();
    options.send("OPTIONS /v1/models HTTP/1.1\r\n\r\n");
    EXPECT_EQ(options.receive().status, 204);
}

TEST_F(ServerRoutes, AKeyOpensAllButHealthAndMetrics) {
    start({.api_key = "sesame"});

    for (const std::string path : {"/health", "/liveness", "/metrics"}) {
        EXPECT_EQ(get(path).status, 200) << path;
    }
    EXPECT_EQ(get("/v1/models").status, 401);
    EXPECT_EQ(get("/v1/models", "Authorization: Bearer sesam\r\n").status, 401);
    EXPECT_EQ(get("/v1/models", "Authorization: Bearer sesame2\r\n").status, 401);
    EXPECT_EQ(get("/v1/models", "Authorization: Bearer sesame\r\n").status, 200);
}

TEST_F(ServerRoutes, ARequestIdIsEchoedOrMade) {
    start();

    EXPECT_EQ(get("/health", "X-Request-Id: abc-1\r\n").header("X-Request-Id"), "abc-1");
    EXPECT_TRUE(get("/health", "X-Request-Id: with space\r\n").header("X-Request-Id").starts_with("req-"));
    EXPECT_TRUE(post("/v1/completions", "{}").header("X-Request-Id").starts_with("req-"));
}

TEST_F(ServerRoutes, ShowsItsConfigurationItsRanksAndItsMetrics) {
    start_running();
    post("/v1/completions", R"({"prompt":"a","max_tokens":3})");

    const json info = body_of(get("/get_server_info"));
    EXPECT_EQ(info["config"]["page_size"], 256);
    EXPECT_EQ(info["ranks"].size(), 2U);
    EXPECT_EQ(info["status"], "ready");
    EXPECT_EQ(body_of(get("/model_info"))["vocab_size"], mini()->vocab_size());
    EXPECT_EQ(body_of(get("/get_load")).size(), 2U);
    const Reply metrics = get("/metrics");
    EXPECT_TRUE(metrics.has("megamoe_time_to_first_token_seconds_count{model=\"mini\"} 1\n")) << metrics.body;
    EXPECT_TRUE(metrics.has("megamoe_inter_token_latency_seconds_count{model=\"mini\"} 2\n"));
    EXPECT_TRUE(metrics.has("megamoe_num_requests_total{finish_reason=\"length\",model=\"mini\"} 1\n") ||
                metrics.has("megamoe_num_requests_total{model=\"mini\",finish_reason=\"length\"} 1\n"));
    EXPECT_TRUE(metrics.has("megamoe_num_running_reqs{dp_rank=\"1\",model=\"mini\"} 0\n"));
}

TEST_F(ServerRoutes, FlushIsRefusedWhileRequestsLive) {
    start();
    EXPECT_EQ(post("/flush_cache", "").status, 200);
    TestClient client = connect();
    client.post("/v1/completions", R"({"prompt":"a","max_tokens":3})");
    backend_.wait_submitted(1);

    EXPECT_EQ(error_of(post("/flush_cache", "")), "the cache is in use: 1 live requests, 1 running and 0 waiting");
}

TEST_F(ServerRoutes, TokenizesBothWays) {
    start();

    const json tokens = body_of(post("/tokenize", R"({"model":"mini","prompt":"one two three"})"));
    EXPECT_EQ(tokens["tokens"], mini()->encode("one two three"));
    EXPECT_EQ(tokens["count"], mini()->encode("one two three").size());
    EXPECT_EQ(body_of(post("/detokenize", json{{"tokens", tokens["tokens"]}}.dump()))["prompt"], "one two three");
    EXPECT_EQ(post("/detokenize", R"({"tokens":[-1]})").status, 400);
}

}  // namespace
}  // namespace megamoe::frontend::testing
