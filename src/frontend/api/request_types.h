// What clients ask for, after parsing and checking: plain data, no JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/request.h"
#include "frontend/text/chat_encoder.h"

namespace megamoe::api {

// Bounds that a request is checked against.
struct Bounds {
    std::int32_t vocab_size = 0;
    std::int32_t num_ranks = 1;
};

struct GenerationOptions {
    engine::SamplingParams sampling{};         // its max_tokens is set once the prompt's length is known
    std::optional<std::int32_t> max_tokens{};  // absent: what the context leaves
    std::vector<std::string> stop{};
    bool keep_stop = false;  // the stop string or token stays in the text
    bool skip_special = true;
    std::int32_t n = 1;
    bool stream = false;
    bool include_usage = false;     // a last event with the usage
    bool continuous_usage = false;  // the usage so far in each event
    std::optional<std::int32_t> routed_rank{};
    std::string rid{};  // the client's name for this request; empty = we make one
};

using Prompt = std::variant<std::string, std::vector<std::int32_t>>;

struct CompletionRequest {
    std::string model;
    std::vector<Prompt> prompts;  // >= 1
    GenerationOptions options;
};

struct ChatRequest {
    std::string model;
    std::vector<text::ChatMessage> messages;  // >= 1
    text::ChatOptions chat;
    bool separate_reasoning = true;  // false: the reasoning stays in the content
    GenerationOptions options;
};

struct GenerateRequest {
    std::vector<Prompt> prompts;  // >= 1
    bool is_batch = false;        // a list was given: a list is answered
    bool logprob_texts = false;   // token texts in the logprob rows
    GenerationOptions options;
};

// One of the two is set.
struct TokenizeRequest {
    std::string model;
    std::optional<std::string> prompt;
    std::vector<text::ChatMessage> messages;
};

struct DetokenizeRequest {
    std::string model;
    std::vector<std::int32_t> tokens;
    bool skip_special = true;
};

struct AbortRequest {
    std::string rid;
    bool all = false;
};

}  // namespace megamoe::api
