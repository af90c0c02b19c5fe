#include "frontend/api/parse.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace megamoe::api {
namespace {

constexpr Bounds kBounds{.vocab_size = 4096, .num_ranks = 4};

CompletionRequest completion(const std::string& body) {
    auto parsed = parse_completion(body, kBounds);
    EXPECT_TRUE(std::holds_alternative<CompletionRequest>(parsed)) << std::get<ApiError>(parsed).message;
    return std::get<CompletionRequest>(std::move(parsed));
}

ChatRequest chat(const std::string& fields) {
    auto parsed = parse_chat(R"({"messages":[{"role":"user","content":"Hi"}])" + fields + "}", kBounds);
    EXPECT_TRUE(std::holds_alternative<ChatRequest>(parsed)) << std::get<ApiError>(parsed).message;
    return std::get<ChatRequest>(std::move(parsed));
}

GenerateRequest generate(const std::string& body) {
    auto parsed = parse_generate(body, kBounds);
    EXPECT_TRUE(std::holds_alternative<GenerateRequest>(parsed)) << std::get<ApiError>(parsed).message;
    return std::get<GenerateRequest>(std::move(parsed));
}

template <class T>
ApiError error_of(const Parsed<T>& parsed) {
    const auto* const error = std::get_if<ApiError>(&parsed);
    return error == nullptr ? ApiError{.status = 200, .message = "accepted"} : *error;
}

ApiError completion_error(const std::string& fields) {
    return error_of(parse_completion(R"({"prompt":"x")" + (fields.empty() ? "" : "," + fields) + "}", kBounds));
}

ApiError chat_error(const std::string& body) {
    return error_of(parse_chat(body, kBounds));
}

TEST(ParseCompletion, TakesPromptsInFourForms) {
    EXPECT_EQ(completion(R"({"prompt":"a"})").prompts, (std::vector<Prompt>{"a"}));
    EXPECT_EQ(completion(R"({"prompt":["a","b"]})").prompts, (std::vector<Prompt>{"a", "b"}));
    EXPECT_EQ(completion(R"({"prompt":[1,2]})").prompts, (std::vector<Prompt>{std::vector{1, 2}}));
    EXPECT_EQ(completion(R"({"prompt":[[1],[2,3]]})").prompts,
              (std::vector<Prompt>{std::vector{1}, std::vector{2, 3}}));
}

TEST(ParseCompletion, GivesDefaultsToWhatIsAbsentOrNull) {
    const auto request = completion(R"({"prompt":"a","temperature":null,"stop":null,"n":null,"seed":null})");

    EXPECT_EQ(request.options.sampling.temperature, 1.0F);
    EXPECT_EQ(request.options.sampling.top_p, 1.0F);
    EXPECT_EQ(request.options.sampling.top_k, -1);
    EXPECT_EQ(request.options.sampling.num_logprobs, -1);
    EXPECT_EQ(request.options.sampling.seed, std::nullopt);
    EXPECT_EQ(request.options.max_tokens, 16);
    EXPECT_EQ(request.options.n, 1);
    EXPECT_FALSE(request.options.stream);
}

TEST(ParseCompletion, NullMaxTokensAsksForAllThatTheContextLeaves) {
    EXPECT_EQ(completion(R"({"prompt":"a","max_tokens":null})").options.max_tokens, std::nullopt);
}

TEST(ParseCompletion, ReadsEveryField) {
    const auto request = completion(R"({"model":"m","prompt":"a","max_tokens":7.0,"min_tokens":3,"temperature":0.5,
        "top_p":0.25,"top_k":5,"min_p":0.125,"presence_penalty":-1,"frequency_penalty":1.5,"repetition_penalty":1.25,
        "seed":-3,"n":2,"best_of":2,"stop":["x","y"],"stop_token_ids":[9],"ignore_eos":true,"logprobs":4,
        "logit_bias":{"12":-100},"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},
        "skip_special_tokens":false,"no_stop_trim":true,"routed_dp_rank":3,"rid":"r1","user":"u","echo":false})");

    const engine::SamplingParams& sampling = request.options.sampling;
    EXPECT_EQ(request.model, "m");
    EXPECT_EQ(request.options.max_tokens, 7);
    EXPECT_EQ(sampling.min_tokens, 3);
    EXPECT_EQ(sampling.temperature, 0.5F);
    EXPECT_EQ(sampling.top_p, 0.25F);
    EXPECT_EQ(sampling.top_k, 5);
    EXPECT_EQ(sampling.min_p, 0.125F);
    EXPECT_EQ(sampling.presence_penalty, -1.0F);
    EXPECT_EQ(sampling.frequency_penalty, 1.5F);
    EXPECT_EQ(sampling.repetition_penalty, 1.25F);
    EXPECT_EQ(sampling.seed, static_cast<std::uint64_t>(-3));
    EXPECT_EQ(sampling.stop_token_ids, std::vector{9});
    EXPECT_TRUE(sampling.ignore_eos);
    EXPECT_EQ(sampling.num_logprobs, 4);
    EXPECT_EQ(sampling.logit_bias, (std::vector<std::pair<std::int32_t, float>>{{12, -100.0F}}));
    EXPECT_EQ(request.options.stop, (std::vector<std::string>{"x", "y"}));
    EXPECT_EQ(request.options.n, 2);
    EXPECT_TRUE(request.options.stream);
    EXPECT_TRUE(request.options.include_usage);
    EXPECT_TRUE(request.options.continuous_usage);
    EXPECT_FALSE(request.options.skip_special);
    EXPECT_TRUE(request.options.keep_stop);
    EXPECT_EQ(request.options.routed_rank, 3);
    EXPECT_EQ(request.options.rid, "r1");
}

TEST(ParseCompletion, ALargeUnsignedSeedIsTakenAsItIs) {
    EXPECT_EQ(completion(R"({"prompt":"a","seed":18446744073709551615})").options.sampling.seed, UINT64_MAX);
}

struct Refusal {
    const char* fields;
    const char* param;
    const char* message;
};

class RefusedFields : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedFields, AreNamedWithValueAndReason) {
    const ApiError error = completion_error(GetParam().fields);

    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.param, GetParam().param);
    EXPECT_EQ(error.message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    ParseCompletion, RefusedFields,
    ::testing::Values(
        Refusal{R"("temperature":-1)", "temperature", "temperature is -1, must be in [0, 100]"},
        Refusal{R"("temperature":"hot")", "temperature", R"(temperature is "hot", expected a number)"},
        Refusal{R"("temperature":true)", "temperature", "temperature is true, expected a number"},
        Refusal{R"("top_p":0)", "top_p", "top_p is 0, must be in (0, 1]"},
        Refusal{R"("top_p":1.01)", "top_p", "top_p is 1.01, must be in (0, 1]"},
        Refusal{R"("top_k":-2)", "top_k", "top_k is -2, must be in [-1, 2147483647]"},
        Refusal{R"("min_p":2)", "min_p", "min_p is 2, must be in [0, 1]"},
        Refusal{R"("presence_penalty":2.5)", "presence_penalty", "presence_penalty is 2.5, must be in [-2, 2]"},
        Refusal{R"("repetition_penalty":0)", "repetition_penalty", "repetition_penalty is 0, must be in (0, 2]"},
        Refusal{R"("max_tokens":0)", "max_tokens", "max_tokens is 0, must be in [1, 2147483647]"},
        Refusal{R"("max_tokens":1.5)", "max_tokens", "max_tokens is 1.5, expected a whole number"},
        Refusal{R"("max_tokens":1e300)", "max_tokens", "max_tokens is 1e+300, must be in [1, 2147483647]"},
        Refusal{R"("max_tokens":99999999999999999999)", "max_tokens",
                "max_tokens is 1e+20, must be in [1, 2147483647]"},
        Refusal{R"("max_tokens":4,"min_tokens":5)", "min_tokens", "min_tokens is 5, must not exceed max_tokens = 4"},
        Refusal{R"("n":0)", "n", "n is 0, must be in [1, 128]"},
        Refusal{R"("n":2,"best_of":3)", "best_of", "best_of is 3, which is not supported beyond n = 2; leave it out"},
        Refusal{R"("stream":"yes")", "stream", R"(stream is "yes", expected true or false)"},
        Refusal{R"("stream_options":{"include_usage":true})", "stream_options",
                "stream_options is an object, which needs stream = true"},
        Refusal{R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage",
                "stream_options.include_usage is 1, expected true or false"},
        Refusal{R"("stop":["a",3])", "stop[1]", "stop[1] is 3, expected a string"},
        Refusal{R"("stop":"")", "stop", R"(stop is "", must have 1 to 1024 bytes)"},
        Refusal{R"("stop_token_ids":[4096])", "stop_token_ids[0]",
                "stop_token_ids[0] is 4096, must be a token id in [0, 4095]"},
        Refusal{R"("logit_bias":{"x":1})", R"(logit_bias["x"])",
                R"(logit_bias["x"] is 1, but its key must be a token id in [0, 4095])"},
        Refusal{R"("logit_bias":{"5":101})", R"(logit_bias["5"])",
                R"(logit_bias["5"] is 101, must be a number in [-100, 100])"},
        Refusal{R"("logprobs":21)", "logprobs", "logprobs is 21, must be in [0, 20]"},
        Refusal{R"("routed_dp_rank":4)", "routed_dp_rank", "routed_dp_rank is 4, must be in [0, 3]"},
        Refusal{R"("seed":"one")", "seed", R"(seed is "one", expected a whole number)"},
        Refusal{R"("model":3)", "model", "model is 3, expected a string"},
        Refusal{R"("echo":true)", "echo", "echo is true, which is not supported by this server; leave it out"},
        Refusal{R"("suffix":"end")", "suffix",
                R"(suffix is "end", which is not supported by this server; leave it out)"},
        Refusal{R"("response_format":{"type":"json_object"})", "response_format",
                "response_format is an object, which is not supported by this server; leave it out"}));

TEST(ParseCompletion, RefusesPromptsThatAreNone) {
    const auto message = [](const std::string& body) { return error_of(parse_completion(body, kBounds)).message; };
    const std::string forms = "expected a string, a list of strings, a list of token ids or a list of those";

    EXPECT_EQ(message("{}"), "prompt is null, but it is required");
    EXPECT_EQ(message(R"({"prompt":[]})"), "prompt is a list of 0, " + forms);
    EXPECT_EQ(message(R"({"prompt":{}})"), "prompt is an object, " + forms);
    EXPECT_EQ(message(R"({"prompt":[null]})"), "prompt[0] is null, " + forms);
    EXPECT_EQ(message(R"({"prompt":["a",1]})"), "prompt[1] is 1, expected a string like the first");
    EXPECT_EQ(message(R"({"prompt":[[1],"a"]})"), R"(prompt[1] is "a", expected a list of token ids)");
    EXPECT_EQ(message(R"({"prompt":[1,-1]})"), "prompt[1] is -1, must be a token id in [0, 4095]");
    EXPECT_EQ(message(R"({"prompt":[[1],[]]})"), "prompt[1] is a list of 0, must not be empty");
}

TEST(ParseBody, SaysWhereJsonIsBroken) {
    const auto message = [](const std::string& body) { return error_of(parse_completion(body, kBounds)).message; };

    EXPECT_EQ(message("{\"prompt\":\n  oops}"), "the body is not JSON: stopped at line 2, column 3");
    EXPECT_EQ(message(""), "the body is not JSON: stopped at line 1, column 1");
    EXPECT_EQ(message("[1]"), "the body is a list of 1, expected a JSON object");
    EXPECT_EQ(message(R"({"temperature":1e999})"), "the body is not JSON: a number is out of range");
    EXPECT_EQ(message(std::string(100000, '[')), "the body is nested deeper than 64 levels");
}

TEST(ParseChat, ReadsMessagesAndJoinsTextParts) {
    const auto parsed = parse_chat(R"({"messages":[{"role":"system","content":"S"},
        {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
        {"role":"assistant","content":"c","reasoning_content":"r"},{"role":"user","content":"d"}]})",
                                   kBounds);

    const auto& request = std::get<ChatRequest>(parsed);
    ASSERT_EQ(request.messages.size(), 4U);
    EXPECT_EQ(request.messages[0].role, text::Role::kSystem);
    EXPECT_EQ(request.messages[1].content, "a\n\nb");
    EXPECT_EQ(request.messages[2].reasoning, "r");
    EXPECT_EQ(request.options.max_tokens, std::nullopt);
    EXPECT_FALSE(request.chat.thinking);
}

TEST(ParseChat, TheNewerLengthFieldWins) {
    EXPECT_EQ(chat(R"(,"max_tokens":5)").options.max_tokens, 5);
    EXPECT_EQ(chat(R"(,"max_tokens":5,"max_completion_tokens":6)").options.max_tokens, 6);
}

TEST(ParseChat, ThinkingIsAskedForInFourWays) {
    EXPECT_TRUE(chat(R"(,"chat_template_kwargs":{"thinking":true})").chat.thinking);
    EXPECT_TRUE(chat(R"(,"chat_template_kwargs":{"enable_thinking":true})").chat.thinking);
    EXPECT_TRUE(chat(R"(,"thinking":{"type":"enabled"})").chat.thinking);
    EXPECT_TRUE(chat(R"(,"reasoning_effort":"low")").chat.thinking);
    EXPECT_EQ(chat(R"(,"reasoning_effort":"max")").chat.effort, text::Effort::kMax);
    EXPECT_FALSE(chat(R"(,"reasoning_effort":"none")").chat.thinking);
    EXPECT_FALSE(chat(R"(,"reasoning_effort":"high","chat_template_kwargs":{"thinking":false})").chat.thinking);
}

TEST(ParseChat, LogprobsAreOfTheChosenTokenAndTheBest) {
    EXPECT_EQ(chat("").options.sampling.num_logprobs, -1);
    EXPECT_EQ(chat(R"(,"logprobs":true)").options.sampling.num_logprobs, 0);
    EXPECT_EQ(chat(R"(,"logprobs":true,"top_logprobs":3)").options.sampling.num_logprobs, 3);
}

TEST(ParseChat, ValuesThatAskForNothingAreHarmless) {
    chat(R"(,"tools":[],"tool_choice":"auto","response_format":{"type":"text"},"modalities":["text"],
           "parallel_tool_calls":true,"store":false,"metadata":{},"service_tier":"auto","priority":0,"made_up":1)");
}

TEST(ParseChat, ContinuesALastAssistantMessageOnlyWhenAsked) {
    const std::string messages = R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}])";

    const auto continued = parse_chat(messages + R"(,"continue_final_message":true})", kBounds);
    EXPECT_TRUE(std::get<ChatRequest>(continued).messages.back().without_eos);
    EXPECT_EQ(chat_error(messages + "}").param, "messages[1]");
}

TEST(ParseChat, RefusesWhatItDoesNotUnderstandByName) {
    const auto message = [](const std::string& messages, const std::string& rest = "") {
        return chat_error(R"({"messages":)" + messages + rest + "}").message;
    };
    const std::string hi = R"([{"role":"user","content":"Hi"}])";

    EXPECT_EQ(message("[]"), "messages is a list of 0, expected a list with at least one message");
    EXPECT_EQ(message("[3]"), "messages[0] is 3, expected an object with role and content");
    EXPECT_EQ(message(R"([{"role":"robot","content":"x"}])"),
              R"(messages[0].role is "robot", expected system, developer, user or assistant)");
    EXPECT_EQ(message(R"([{"role":"user"}])"),
              "messages[0].content is null, expected a string or a list of text parts");
    EXPECT_EQ(message(R"([{"role":"user","content":[{"type":"image_url"}]}])"),
              R"(messages[0].content[0].type is "image_url", but only "text" is supported)");
    EXPECT_EQ(message(hi, R"(,"tools":[{}])"),
              "tools is a list of 1, which is not supported by this server; leave it out");
    EXPECT_EQ(message(hi, R"(,"chat_template_kwargs":{"mood":1})"),
              "chat_template_kwargs.mood is 1, but this chat template only takes thinking, drop_thinking, "
              "reasoning_effort");
    EXPECT_EQ(message(hi, R"(,"reasoning_effort":"huge")"),
              R"(reasoning_effort is "huge", expected none, minimal, low, medium, high, xhigh or max)");
    EXPECT_EQ(message(hi, R"(,"top_logprobs":3)"), "top_logprobs is 3, which needs logprobs = true");
}

TEST(ParseGenerate, ReadsTextOrIdsAloneOrInBatches) {
    EXPECT_FALSE(generate(R"({"text":"a"})").is_batch);
    EXPECT_TRUE(generate(R"({"text":["a"]})").is_batch);
    EXPECT_EQ(generate(R"({"input_ids":[[1],[2]]})").prompts.size(), 2U);
    EXPECT_EQ(generate(R"({"text":"a"})").options.max_tokens, 128);
}

TEST(ParseGenerate, ReadsItsOwnFieldNames) {
    const auto request = generate(R"({"input_ids":[5],"stream":true,"return_logprob":true,"top_logprobs_num":2,
        "sampling_params":{"max_new_tokens":9,"min_new_tokens":2,"sampling_seed":4,"temperature":0,"n":2}})");

    EXPECT_EQ(request.options.max_tokens, 9);
    EXPECT_EQ(request.options.sampling.min_tokens, 2);
    EXPECT_EQ(request.options.sampling.seed, 4U);
    EXPECT_EQ(request.options.sampling.num_logprobs, 2);
    EXPECT_EQ(request.options.n, 2);
    EXPECT_TRUE(request.options.stream);
}

TEST(ParseGenerate, RefusesBothInputsNoneAndTheWrongKind) {
    const auto param = [](const std::string& body) { return error_of(parse_generate(body, kBounds)).param; };

    EXPECT_EQ(param("{}"), "input_ids");
    EXPECT_EQ(param(R"({"text":"a","input_ids":[1]})"), "text");
    EXPECT_EQ(param(R"({"text":[1,2]})"), "text");
    EXPECT_EQ(param(R"({"input_ids":"a"})"), "input_ids");
    EXPECT_EQ(param(R"({"text":"a","sampling_params":{"top_p":7}})"), "sampling_params.top_p");
    EXPECT_EQ(param(R"({"text":"a","sampling_params":[]})"), "sampling_params");
}

// Random JSON that likes the field names, so that it gets far.
nlohmann::json random_json(int depth) {
    static const std::vector<std::string> kNames{"prompt",
                                                 "messages",
                                                 "role",
                                                 "content",
                                                 "type",
                                                 "text",
                                                 "input_ids",
                                                 "sampling_params",
                                                 "stop",
                                                 "n",
                                                 "model",
                                                 "stream",
                                                 "stream_options",
                                                 "logprobs",
                                                 "top_logprobs",
                                                 "logit_bias",
                                                 "tools",
                                                 "seed",
                                                 "top_p",
                                                 "user",
                                                 "max_tokens",
                                                 "temperature",
                                                 "chat_template_kwargs",
                                                 "thinking"};
    const auto kind = *rc::gen::inRange(0, depth > 0 ? 8 : 6);
    switch (kind) {
        case 0:
            return nullptr;
        case 1:
            return *rc::gen::arbitrary<bool>();
        case 2:
            return *rc::gen::arbitrary<std::int64_t>();
        case 3:
            return *rc::gen::arbitrary<double>();
        case 4:
            return *rc::gen::elementOf(kNames);
        case 5:
            return *rc::gen::inRange(0, 20);
        default:
            break;
    }
    nlohmann::json value = kind == 6 ? nlohmann::json::array() : nlohmann::json::object();
    const auto size = *rc::gen::inRange(0, 5);
    for (int i = 0; i < size; ++i) {
        if (kind == 6) {
            value.push_back(random_json(depth - 1));
        } else {
            value[*rc::gen::elementOf(kNames)] = random_json(depth - 1);
        }
    }
    return value;
}

void expect_no_surprise(const std::string& body) {
    const auto status = [](const auto& parsed) {
        const auto* const error = std::get_if<ApiError>(&parsed);
        return error == nullptr ? 200 : error->status;
    };
    for (const int got : {status(parse_completion(body, kBounds)), status(parse_chat(body, kBounds)),
                          status(parse_generate(body, kBounds)), status(parse_tokenize(body)),
                          status(parse_detokenize(body, kBounds)), status(parse_abort(body))}) {
        RC_ASSERT(got == 200 || got == 400);
    }
}

TEST(ParseAnything, RandomJsonIsTakenOrRefused) {
    EXPECT_TRUE(rc::check([] { expect_no_surprise(random_json(4).dump()); }));
}

TEST(ParseAnything, RandomBytesAreTakenOrRefused) {
    EXPECT_TRUE(rc::check([](const std::string& bytes) { expect_no_surprise(bytes); }));
}

TEST(ParseAnything, BrokenRequestsAreTakenOrRefused) {
    const std::string body = R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"\u00e4"}]}],)"
                             R"("prompt":[[1,2]],"stop":["a"],"logit_bias":{"1":2},"stream_options":{},"n":2.5e1})";
    for (std::size_t i = 0; i < body.size(); ++i) {
        expect_no_surprise(body.substr(0, i));
        std::string changed = body;
        changed[i] = '\xff';
        expect_no_surprise(changed);
    }
}

}  // namespace
}  // namespace megamoe::api
