#include "frontend/api/work.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <utility>

#include "frontend/api/parse.h"
#include "frontend/text/chat_encoder.h"

namespace megamoe::api {
namespace {

constexpr std::size_t kMaxChoices = 4096;

Bounds bounds_of(const WorkContext& context) {
    return {context.model.vocab_size, context.model.num_ranks};
}

AnswerHead make_head(std::string_view prefix, const GenerationOptions& options, const WorkContext& context,
                     std::uint64_t number, std::int64_t created) {
    return {.id = options.rid.empty() ? fmt::format("{}-{:x}{:08x}", prefix, created, number) : options.rid,
            .model = context.model.served_name,
            .created = created};
}

std::vector<std::int32_t> tokenize(Prompt&& prompt, const text::Tokenizer& tokenizer) {
    if (const auto* const text = std::get_if<std::string>(&prompt)) {
        return tokenizer.encode(*text);
    }
    return std::get<std::vector<std::int32_t>>(std::move(prompt));
}

// Adds a prompt to `work`, with the length that its answer may have.
std::optional<ApiError> add_item(std::vector<std::int32_t> prompt, std::string_view field, const WorkContext& context,
                                 Work& work) {
    const auto prompt_tokens = static_cast<std::int64_t>(prompt.size());
    const std::int64_t room = context.model.context_length - prompt_tokens;
    if (prompt.empty()) {
        return ApiError{.message = fmt::format("{} has no tokens", field), .param = std::string(field)};
    }
    const std::int64_t wanted = work.options.max_tokens.value_or(1);
    if (wanted > room) {
        return ApiError{
            .message = fmt::format("the context has {} tokens, but {} has {} and the answer may take {}: together {}",
                                   context.model.context_length, field, prompt_tokens, wanted, prompt_tokens + wanted),
            .param = std::string(field),
            .code = "context_length_exceeded"};
    }
    if (work.options.sampling.min_tokens > room) {
        return ApiError{.message = fmt::format("min_tokens is {}, but the context leaves {} tokens behind the prompt",
                                               work.options.sampling.min_tokens, room),
                        .param = "min_tokens"};
    }
    const auto max_tokens =
        static_cast<std::int32_t>(work.options.max_tokens.value_or(static_cast<std::int32_t>(room)));
    work.items.push_back({std::move(prompt), max_tokens, work.options.routed_rank});
    return std::nullopt;
}

std::optional<ApiError> add_items(std::vector<Prompt> prompts, std::string_view field, const WorkContext& context,
                                  Work& work) {
    const std::size_t num_choices = prompts.size() * static_cast<std::size_t>(work.options.n);
    if (num_choices > kMaxChoices) {
        return ApiError{.message = fmt::format("{} prompts with n = {} make {} choices, at most {} are allowed",
                                               prompts.size(), work.options.n, num_choices, kMaxChoices),
                        .param = "n"};
    }
    for (std::size_t i = 0; i < prompts.size(); ++i) {
        const std::string name = prompts.size() == 1 ? std::string(field) : fmt::format("{}[{}]", field, i);
        auto error = add_item(tokenize(std::move(prompts[i]), *context.tokenizer), name, context, work);
        if (error) {
            return error;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<ApiError> check_model(const std::string& model, const frontend::ModelInfo& info) {
    const std::filesystem::path path = info.model_path;
    const std::string base = (path.has_filename() ? path : path.parent_path()).filename().string();
    const std::array<std::string, 4> known{"", info.served_name, info.model_path, base};
    if (std::find(known.begin(), known.end(), model) != known.end()) {
        return std::nullopt;
    }
    return ApiError{.status = 404,
                    .message = fmt::format("the model '{}' does not exist; this server has '{}'", model.substr(0, 200),
                                           info.served_name),
                    .param = "model",
                    .code = "model_not_found"};
}

Parsed<std::vector<std::int32_t>> encode_messages(const std::vector<text::ChatMessage>& messages,
                                                  const text::ChatOptions& options, const WorkContext& context) {
    const auto& constants = context.model.prompt_constants;
    const auto prompt = text::render_chat(messages, options, constants ? &*constants : nullptr);
    if (!prompt) {
        return to_api_error(prompt.error());
    }
    return context.tokenizer->encode(prompt.value().text, prompt.value().literal);
}

Parsed<Work> make_completion_work(std::string_view body, const WorkContext& context, std::uint64_t number,
                                  std::int64_t created) {
    auto parsed = parse_completion(body, bounds_of(context));
    if (auto* const error = std::get_if<ApiError>(&parsed)) {
        return std::move(*error);
    }
    auto& request = std::get<CompletionRequest>(parsed);
    if (auto error = check_model(request.model, context.model)) {
        return *std::move(error);
    }
    Work work{.options = std::move(request.options)};
    if (auto error = add_items(std::move(request.prompts), "prompt", context, work)) {
        return *std::move(error);
    }
    AnswerHead head = make_head("cmpl", work.options, context, number, created);
    work.id = head.id;
    work.presenter = make_completion_presenter(std::move(head), work.options, context.tokenizer);
    return work;
}

Parsed<Work> make_chat_work(std::string_view body, const WorkContext& context, std::uint64_t number,
                            std::int64_t created) {
    auto parsed = parse_chat(body, bounds_of(context));
    if (auto* const error = std::get_if<ApiError>(&parsed)) {
        return std::move(*error);
    }
    auto& request = std::get<ChatRequest>(parsed);
    if (auto error = check_model(request.model, context.model)) {
        return *std::move(error);
    }
    auto tokens = encode_messages(request.messages, request.chat, context);
    if (auto* const error = std::get_if<ApiError>(&tokens)) {
        return std::move(*error);
    }
    Work work{.options = std::move(request.options),
              .is_thinking = request.chat.thinking && request.separate_reasoning};
    if (auto error = add_item(std::get<std::vector<std::int32_t>>(std::move(tokens)), "messages", context, work)) {
        return *std::move(error);
    }
    AnswerHead head = make_head("chatcmpl", work.options, context, number, created);
    work.id = head.id;
    work.presenter = make_chat_presenter(std::move(head), work.options, context.tokenizer);
    return work;
}

Parsed<Work> make_generate_work(std::string_view body, const WorkContext& context, std::uint64_t number,
                                std::int64_t created) {
    auto parsed = parse_generate(body, bounds_of(context));
    if (auto* const error = std::get_if<ApiError>(&parsed)) {
        return std::move(*error);
    }
    auto& request = std::get<GenerateRequest>(parsed);
    const bool is_text = std::holds_alternative<std::string>(request.prompts.front());
    Work work{.options = std::move(request.options)};
    if (auto error = add_items(std::move(request.prompts), is_text ? "text" : "input_ids", context, work)) {
        return *std::move(error);
    }
    AnswerHead head = make_head("gen", work.options, context, number, created);
    work.id = head.id;
    const bool is_list = request.is_batch || work.options.n > 1;
    work.presenter =
        make_generate_presenter(std::move(head), is_list, request.logprob_texts, work.options, context.tokenizer);
    return work;
}

Work make_probe_work(const std::vector<std::int32_t>& ranks, const WorkContext& context, std::uint64_t number) {
    Work work{.id = fmt::format("health-{:08x}", number), .is_probe = true, .presenter = make_probe_presenter()};
    std::vector<std::int32_t> prompt = context.tokenizer->encode("health");
    if (prompt.empty()) {
        prompt = {0};
    }
    for (const std::int32_t rank : ranks) {
        work.items.push_back({prompt, 1, rank});
    }
    work.options.sampling.temperature = 0;
    return work;
}

}  // namespace megamoe::api
