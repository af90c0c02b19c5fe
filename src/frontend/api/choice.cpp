#include "frontend/api/choice.h"

#include <utility>

namespace megamoe::api {

using engine::FinishReason;

Choice::Choice(std::shared_ptr<const text::Tokenizer> tokenizer, const GenerationOptions& options, bool is_thinking)
    : detokenizer_(std::move(tokenizer), options.skip_special),
      matcher_(options.stop, options.keep_stop),
      splitter_(is_thinking),
      stops_(options.stop),
      min_tokens_(options.sampling.min_tokens),
      keep_stop_(options.keep_stop),
      wants_scores_(options.sampling.num_logprobs >= 0) {}

void Choice::push(const engine::Update& update) {
    if (finish_ != FinishReason::kNone) {
        return;
    }
    if (update.token >= 0) {
        push_token(update);
    }
    if (finish_ == FinishReason::kNone && update.finish != FinishReason::kNone) {
        if (update.stop_token >= 0) {
            matched_ = update.stop_token;
        }
        end(update.finish);
    }
}

void Choice::push_token(const engine::Update& update) {
    completion_tokens_ += 1;
    reasoning_tokens_ += splitter_.is_inside() ? 1 : 0;
    delta_.tokens.push_back(update.token);
    if (wants_scores_) {
        delta_.scores.push_back({update.token, update.logprob.logprob, update.top_logprobs});
    }
    const bool ends_here = update.finish == FinishReason::kStop && update.stop_token == update.token;
    if (!ends_here || keep_stop_) {
        push_text(detokenizer_.push(update.token));
    }
}

void Choice::push_text(const std::string& text) {
    if (completion_tokens_ <= min_tokens_) {  // too early to stop
        show(splitter_.push(text));
        return;
    }
    const text::StopMatcher::Output safe = matcher_.push(text);
    show(splitter_.push(safe.text));
    if (safe.matched) {
        matched_ = stops_[*safe.matched];
        finish_ = FinishReason::kStop;
        show(splitter_.flush());
    }
}

void Choice::end(FinishReason reason) {
    push_text(detokenizer_.flush());
    if (finish_ == FinishReason::kNone) {
        finish_ = reason;
        show(splitter_.push(matcher_.flush()));
        show(splitter_.flush());
    }
}

void Choice::show(ReasoningSplitter::Output&& part) {
    delta_.reasoning += part.reasoning;
    delta_.content += part.content;
}

Delta Choice::take() {
    return std::exchange(delta_, {});
}

}  // namespace megamoe::api
