// How the choices of a request look to its client: one class an endpoint, all of them JSON without sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "frontend/api/choice.h"
#include "frontend/api/request_types.h"

namespace megamoe::api {

struct Usage {
    std::int64_t prompt_tokens = 0;
    std::int64_t completion_tokens = 0;
    std::int64_t reasoning_tokens = 0;  // among the completion tokens
};

// One choice as it is now, with what is new in it.
struct ChoiceView {
    std::int32_t index = 0;
    Delta delta;
    engine::FinishReason finish = engine::FinishReason::kNone;
    Matched matched;
    Usage usage;  // of this choice and its prompt
    double elapsed_seconds = 0;
};

class Presenter {
  public:
    virtual ~Presenter() = default;

    // Appends the server-sent events for one choice. Called with the finish at most once, in its last call.
    virtual void add_events(const ChoiceView& view, std::string& out) = 0;
    // Appends what follows when all choices have ended, before the "[DONE]".
    virtual void add_tail(const Usage& total, std::string& out) = 0;
    // The answer without streaming. `views` in order of index, each with all of its text.
    virtual std::string whole(std::span<const ChoiceView> views, const Usage& total) = 0;
};

// What each object of one answer repeats.
struct AnswerHead {
    std::string id;
    std::string model;
    std::int64_t created = 0;  // seconds since 1970
};

std::unique_ptr<Presenter> make_completion_presenter(AnswerHead head, const GenerationOptions& options,
                                                     std::shared_ptr<const text::Tokenizer> tokenizer);
std::unique_ptr<Presenter> make_chat_presenter(AnswerHead head, const GenerationOptions& options,
                                               std::shared_ptr<const text::Tokenizer> tokenizer);
// In  is_list  the answer is a list, as the request was
std::unique_ptr<Presenter> make_generate_presenter(AnswerHead head, bool is_list, bool logprob_texts,
                                                   const GenerationOptions& options,
                                                   std::shared_ptr<const text::Tokenizer> tokenizer);
// {"status":"ok"} once all choices have ended: for health probes.
std::unique_ptr<Presenter> make_probe_presenter();

}  // namespace megamoe::api
