// What is to be generated for one client request: parsed, templated and tokenised. Making it is pure, and the slow part
// of taking a request, so it runs beside the I/O thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/api/api_error.h"
#include "frontend/api/model_info.h"
#include "frontend/api/presenter.h"
#include "frontend/api/request_types.h"
#include "frontend/text/tokenizer.h"

namespace megamoe::api {

struct WorkItem {
    std::vector<std::int32_t> prompt;
    std::int32_t max_tokens = 0;
    std::optional<std::int32_t> rank;
};

struct Work {
    std::string id{};  // the client's `rid`, or ours
    std::vector<WorkItem> items{};
    GenerationOptions options{};  // each item is generated `n` times
    bool is_thinking = false;     // the prompts have opened the reasoning, and it is shown apart
    bool is_probe = false;        // not counted in the metrics
    std::unique_ptr<Presenter> presenter{};
};

struct WorkContext {
    std::shared_ptr<const text::Tokenizer> tokenizer;
    frontend::ModelInfo model;
};

// In    number   the request's, for its id: "cmpl-0000002a"
//       created  seconds since 1970
// Error as the parsers; 404 model_not_found; 400 for a prompt that is empty, that does not leave room in the context
//       (both lengths named), or whose template needs texts that the checkpoint lacks
[[nodiscard]] Parsed<Work> make_completion_work(std::string_view body, const WorkContext& context, std::uint64_t number,
                                                std::int64_t created);
[[nodiscard]] Parsed<Work> make_chat_work(std::string_view body, const WorkContext& context, std::uint64_t number,
                                          std::int64_t created);
[[nodiscard]] Parsed<Work> make_generate_work(std::string_view body, const WorkContext& context, std::uint64_t number,
                                              std::int64_t created);
// One token on each of `ranks`.
Work make_probe_work(const std::vector<std::int32_t>& ranks, const WorkContext& context, std::uint64_t number);

// Nothing if `model` is one of the names of the served model, or empty.
std::optional<ApiError> check_model(const std::string& model, const frontend::ModelInfo& info);

// The tokens of a chat. Text that came from messages never becomes markup.
[[nodiscard]] Parsed<std::vector<std::int32_t>> encode_messages(const std::vector<text::ChatMessage>& messages,
                                                                const text::ChatOptions& options,
                                                                const WorkContext& context);

// POST /tokenize: the tokens of a prompt or of messages. POST /detokenize: the text of tokens.
[[nodiscard]] http::Response tokenize_response(std::string_view body, const WorkContext& context);
[[nodiscard]] http::Response detokenize_response(std::string_view body, const WorkContext& context);

}  // namespace megamoe::api
