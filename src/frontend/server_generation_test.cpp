// What clients get for their prompts.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/testing/server_fixture.h"

namespace megamoe::frontend::testing {
namespace {

using ServerGeneration = ServerTest;

TEST_F(ServerGeneration, CompletesAPrompt) {
    start_running();

    const json answer =
        body_of(post("/v1/completions", R"({"model":"mini","prompt":"one two three","max_tokens":40})"));

    EXPECT_EQ(answer["object"], "text_completion");
    EXPECT_EQ(answer["model"], "mini");
    EXPECT_TRUE(answer["id"].get<std::string>().starts_with("cmpl-"));
    EXPECT_TRUE(answer["choices"][0]["text"].get<std::string>().starts_with("one two three"));
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(answer["choices"][0]["logprobs"], nullptr);
    EXPECT_EQ(answer["usage"]["prompt_tokens"], mini()->encode("one two three").size());
    EXPECT_EQ(answer["usage"]["completion_tokens"], 40);
}

TEST_F(ServerGeneration, CompletesEachPromptNTimesInOrder) {
    start_running();

    const json answer = body_of(post("/v1/completions", R"({"prompt":[[5],[6,7]],"n":2,"max_tokens":2,"seed":3})"));

    ASSERT_EQ(answer["choices"].size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(answer["choices"][i]["index"], i);
        const std::vector<std::int32_t> ids = i < 2 ? std::vector{5, 5} : std::vector{6, 7};
        EXPECT_EQ(answer["choices"][i]["text"], mini()->decode(ids, true));
    }
    EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
    EXPECT_EQ(answer["usage"]["completion_tokens"], 8);
    const auto requests = backend_.wait_submitted(4);
    EXPECT_EQ(requests[0].sampling.seed, 3U);
    EXPECT_NE(requests[1].sampling.seed, requests[0].sampling.seed);
    EXPECT_EQ(requests[1].sampling.seed, requests[3].sampling.seed);
}

TEST_F(ServerGeneration, StreamsACompletionWithItsUsage) {
    start_running();

    const Reply reply = post("/v1/completions", R"({"prompt":"one two","max_tokens":3,"stream":true,
        "stream_options":{"include_usage":true}})");

    EXPECT_EQ(reply.header("Content-Type"), "text/event-stream");
    const auto events = reply.events();
    ASSERT_EQ(events.size(), 5U) << reply.body;  // three tokens, the usage, the end
    EXPECT_EQ(json::parse(events[0])["usage"], nullptr);
    EXPECT_EQ(json::parse(events[0])["choices"][0]["finish_reason"], nullptr);
    EXPECT_EQ(json::parse(events[2])["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(json::parse(events[3])["choices"], json::array());
    EXPECT_EQ(json::parse(events[3])["usage"]["completion_tokens"], 3);
    EXPECT_EQ(events[4], "[DONE]");
}

TEST_F(ServerGeneration, AStreamCanCarryTheUsageInEachEvent) {
    start_running();

    const Reply reply = post("/v1/completions", R"({"prompt":"one two","max_tokens":3,"stream":true,
        "stream_options":{"continuous_usage_stats":true}})");

    const auto events = reply.events();
    ASSERT_EQ(events.size(), 4U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(json::parse(events[i])["usage"]["completion_tokens"], i + 1);
    }
}

TEST_F(ServerGeneration, AStopStringEndsTheEnginesRequest) {
    start();
    TestClient client = connect();
    client.post("/v1/completions", R"({"prompt":"one two three","max_tokens":400,"stop":["three"]})");
    const std::size_t prompt_tokens = backend_.wait_submitted(1)[0].prompt.size();

    for (std::size_t i = 0; i < prompt_tokens; ++i) {
        backend_.step();
    }

    const json answer = body_of(client.receive());
    EXPECT_EQ(answer["choices"][0]["text"], "one two ");
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(answer["choices"][0]["matched_stop"], "three");
    backend_.wait_aborted(1);
}

TEST_F(ServerGeneration, CompletionLogprobsHaveTokensOffsetsAndTheBest) {
    start_running();

    const json answer = body_of(post("/v1/completions", R"({"prompt":[40,41],"max_tokens":2,"logprobs":2})"));

    const json logprobs = answer["choices"][0]["logprobs"];
    const std::string first(mini()->token_bytes(40));
    EXPECT_EQ(logprobs["tokens"][0], first);
    EXPECT_EQ(logprobs["token_logprobs"], (json{-0.5, -0.5}));
    EXPECT_EQ(logprobs["text_offset"], (json{0, first.size()}));
    EXPECT_EQ(logprobs["top_logprobs"][0].size(), 2U);
}

TEST_F(ServerGeneration, AnswersAChat) {
    answer_with("Hello there");
    start_running();

    const json answer =
        body_of(post("/v1/chat/completions", R"({"model":"mini","messages":[{"role":"user","content":"Hi"}]})"));

    EXPECT_EQ(answer["object"], "chat.completion");
    EXPECT_EQ(answer["choices"][0]["message"], (json{{"role", "assistant"}, {"content", "Hello there"}}));
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(answer["choices"][0]["matched_stop"], kStopToken);
    const auto prompt = backend_.wait_submitted(1)[0].prompt;
    EXPECT_EQ(prompt, mini()->encode("<｜begin▁of▁sentence｜><｜User｜>Hi<｜Assistant｜></think>"));
    EXPECT_EQ(backend_.wait_submitted(1)[0].sampling.max_tokens, 512 - static_cast<std::int32_t>(prompt.size()));
}

TEST_F(ServerGeneration, TextOfAUserDoesNotBecomeMarkup) {
    answer_with("x");
    start_running();

    post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"</think>"}]})");

    const auto prompt = backend_.wait_submitted(1)[0].prompt;
    const std::int32_t tag = *mini()->id_of("</think>");
    EXPECT_EQ(std::count(prompt.begin(), prompt.end(), tag), 1) << "the template's own";
}

TEST_F(ServerGeneration, ReasoningIsApartFromContent) {
    answer_with("two and two</think>four");
    start_running();

    const json answer = body_of(post("/v1/chat/completions",
                                     R"({"messages":[{"role":"user","content":"2+2?"}],
                                         "chat_template_kwargs":{"thinking":true}})"));

    EXPECT_EQ(answer["choices"][0]["message"]["reasoning_content"], "two and two");
    EXPECT_EQ(answer["choices"][0]["message"]["content"], "four");
    EXPECT_EQ(answer["usage"]["completion_tokens_details"]["reasoning_tokens"],
              mini()->encode("two and two</think>").size());
}

TEST_F(ServerGeneration, StreamsAChatRoleFirstThenReasoningThenContentThenTheEnd) {
    answer_with("why</think>so");
    start_running();

    const Reply reply = post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"?"}],"stream":true,
        "reasoning_effort":"medium"})");

    std::string reasoning;
    std::string content;
    const auto events = reply.events();
    ASSERT_GE(events.size(), 4U);
    EXPECT_EQ(json::parse(events[0])["choices"][0]["delta"], (json{{"role", "assistant"}, {"content", ""}}));
    for (std::size_t i = 1; i + 1 < events.size(); ++i) {
        const json delta = json::parse(events[i])["choices"][0]["delta"];
        reasoning += delta.value("reasoning_content", "");
        content += delta.value("content", "");
    }
    EXPECT_EQ(reasoning, "why");
    EXPECT_EQ(content, "so");
    const json last = json::parse(events[events.size() - 2]);
    EXPECT_EQ(last["choices"][0]["delta"], json::object());
    EXPECT_EQ(last["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(events.back(), "[DONE]");
}

TEST_F(ServerGeneration, ChatLogprobsHaveTheBytesOfEachToken) {
    answer_with("é!");
    start_running();

    const json answer = body_of(post(
        "/v1/chat/completions", R"({"messages":[{"role":"user","content":"?"}],"logprobs":true,"top_logprobs":1})"));

    std::string bytes;
    for (const json& entry : answer["choices"][0]["logprobs"]["content"]) {
        EXPECT_EQ(entry["top_logprobs"].size(), entry["token"] == "" ? 0U : entry["top_logprobs"].size());
        for (const json& byte : entry["bytes"]) {
            bytes += static_cast<char>(byte.get<int>());
        }
    }
    EXPECT_TRUE(bytes.starts_with("é!")) << bytes;
}

TEST_F(ServerGeneration, TheNativeEndpointAnswersInItsOwnShape) {
    start_running();

    const json answer =
        body_of(post("/generate", R"({"input_ids":[40,41],"sampling_params":{"max_new_tokens":3},"rid":"mine",
            "return_logprob":true})"));

    EXPECT_EQ(answer["output_ids"], (json{40, 41, 40}));
    EXPECT_EQ(answer["text"], mini()->decode(std::vector{40, 41, 40}, true));
    EXPECT_EQ(answer["meta_info"]["id"], "mine");
    EXPECT_EQ(answer["meta_info"]["finish_reason"], (json{{"type", "length"}, {"length", 3}}));
    EXPECT_EQ(answer["meta_info"]["prompt_tokens"], 2);
    EXPECT_EQ(answer["meta_info"]["completion_tokens"], 3);
    EXPECT_EQ(answer["meta_info"]["output_token_logprobs"][0], (json{-0.5, 40, nullptr}));
}

TEST_F(ServerGeneration, TheNativeStreamIsCumulative) {
    start_running();

    const Reply reply =
        post("/generate", R"({"input_ids":[40,41],"sampling_params":{"max_new_tokens":3},"stream":true})");

    const auto events = reply.events();
    ASSERT_EQ(events.size(), 4U);
    EXPECT_EQ(json::parse(events[0])["output_ids"], json{40});
    EXPECT_EQ(json::parse(events[2])["output_ids"], (json{40, 41, 40}));
    EXPECT_EQ(json::parse(events[1])["meta_info"]["finish_reason"], nullptr);
    EXPECT_EQ(events[3], "[DONE]");
}

TEST_F(ServerGeneration, ANativeBatchIsAnsweredWithAList) {
    start_running();

    const json answer = body_of(post("/generate", R"({"text":["a"],"sampling_params":{"max_new_tokens":1}})"));

    ASSERT_TRUE(answer.is_array());
    EXPECT_EQ(answer.size(), 1U);
}

TEST_F(ServerGeneration, AWishedRankIsKept) {
    start_running();

    for (int i = 0; i < 3; ++i) {
        post("/v1/completions", R"({"prompt":"a","max_tokens":1,"routed_dp_rank":1})");
    }

    for (const auto& request : backend_.wait_submitted(3)) {
        EXPECT_EQ(request.routed_rank, 1);
    }
}

TEST_F(ServerGeneration, ALongPromptIsRefusedWithBothLengths) {
    start();
    std::string ids = "5";
    for (int i = 1; i < 600; ++i) {
        ids += ",5";
    }

    EXPECT_EQ(error_of(post("/v1/completions", R"({"prompt":[)" + ids + R"(],"max_tokens":1})")),
              "the context has 512 tokens, but prompt has 600 and the answer may take 1: together 601");
    EXPECT_EQ(error_of(post("/v1/completions", R"({"prompt":[5,5],"max_tokens":511})")),
              "the context has 512 tokens, but prompt has 2 and the answer may take 511: together 513");
    EXPECT_EQ(error_of(post("/v1/completions", R"({"prompt":""})")), "prompt has no tokens");
}

}  // namespace
}  // namespace megamoe::frontend::testing
