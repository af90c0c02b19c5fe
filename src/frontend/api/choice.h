// One answer in the making: the engine's tokens become text, end at stop strings, and wait until somebody shows them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/request.h"
#include "frontend/api/reasoning_splitter.h"
#include "frontend/api/request_types.h"
#include "frontend/text/detokenizer.h"
#include "frontend/text/stop_matcher.h"
#include "frontend/text/tokenizer.h"

namespace megamoe::api {

struct ScoredToken {
    std::int32_t token = 0;
    float logprob = 0;
    std::vector<engine::TokenLogprob> best;  // best first
};

// What is new in a choice since it was last shown.
struct Delta {
    std::string reasoning;
    std::string content;
    std::vector<std::int32_t> tokens;  // each token of the engine, shown as text or not
    std::vector<ScoredToken> scores;   // of `tokens`; empty unless asked for

    bool empty() const { return reasoning.empty() && content.empty() && tokens.empty(); }
};

// What made an answer stop: nothing we know of, a token id, or a stop string.
using Matched = std::variant<std::monostate, std::int32_t, std::string>;

class Choice {
  public:
    // In  is_thinking  the prompt has opened the reasoning, and it is to be shown apart
    Choice(std::shared_ptr<const text::Tokenizer> tokenizer, const GenerationOptions& options, bool is_thinking);

    // Takes the engine's next update, but not a kError. After the end nothing changes any more.
    // Spec  serving spec, 9.5
    void push(const engine::Update& update);

    bool has_news() const { return !delta_.empty(); }
    Delta take();

    // kNone while it runs. It may end here, at a stop string, before the engine knows.
    engine::FinishReason finish() const { return finish_; }
    const Matched& matched() const { return matched_; }
    std::int32_t completion_tokens() const { return completion_tokens_; }
    std::int32_t reasoning_tokens() const { return reasoning_tokens_; }

  private:
    void push_token(const engine::Update& update);
    void push_text(const std::string& text);
    void show(ReasoningSplitter::Output&& part);
    void end(engine::FinishReason reason);

    text::Detokenizer detokenizer_;
    text::StopMatcher matcher_;
    ReasoningSplitter splitter_;
    std::vector<std::string> stops_;
    std::int32_t min_tokens_;
    bool keep_stop_;
    bool wants_scores_;
    Delta delta_;
    engine::FinishReason finish_ = engine::FinishReason::kNone;
    Matched matched_;
    std::int32_t completion_tokens_ = 0;
    std::int32_t reasoning_tokens_ = 0;
};

}  // namespace megamoe::api
