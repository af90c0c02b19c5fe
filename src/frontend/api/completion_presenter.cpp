#include <algorithm>
#include <utility>
#include <vector>

#include "frontend/api/presenter_json.h"

namespace megamoe::api {
namespace {

std::size_t num_characters(std::string_view utf8) {
    return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;  // not inside a character
    }));
}

class CompletionPresenter final : public Presenter {
  public:
    CompletionPresenter(AnswerHead head, const GenerationOptions& options,
                        std::shared_ptr<const text::Tokenizer> tokenizer)
        : head_(std::move(head)), writer_(head_, "text_completion", options), tokenizer_(std::move(tokenizer)) {}

    void add_events(const ChoiceView& view, std::string& out) override { writer_.add(choice(view), view.usage, out); }

    void add_tail(const Usage& total, std::string& out) override { writer_.add_usage(total, out); }

    std::string whole(std::span<const ChoiceView> views, const Usage& total) override {
        Json choices = Json::array();
        for (const ChoiceView& view : views) {
            choices.push_back(choice(view));
        }
        return whole_answer(head_, "text_completion", std::move(choices), total);
    }

  private:
    Json choice(const ChoiceView& view) {
        return {{"index", view.index},
                {"text", view.delta.content},
                {"logprobs", view.delta.scores.empty() ? Json() : logprobs(view)},
                {"finish_reason", finish_word(view.finish)},
                {"matched_stop", matched_value(view.matched)}};
    }

    Json logprobs(const ChoiceView& view) {
        Json tokens = Json::array();
        Json values = Json::array();
        Json best = Json::array();
        Json offsets = Json::array();
        std::size_t& offset = offset_of(view.index);
        for (const ScoredToken& score : view.delta.scores) {
            const std::string text = token_text(*tokenizer_, score.token);
            Json alternatives = Json::object();
            for (const engine::TokenLogprob& other : score.best) {
                alternatives[token_text(*tokenizer_, other.token)] = other.logprob;
            }
            tokens.push_back(text);
            values.push_back(score.logprob);
            best.push_back(std::move(alternatives));
            offsets.push_back(offset);
            offset += num_characters(text);
        }
        return {{"tokens", std::move(tokens)},
                {"token_logprobs", std::move(values)},
                {"top_logprobs", std::move(best)},
                {"text_offset", std::move(offsets)}};
    }

    std::size_t& offset_of(std::int32_t index) {
        const auto i = static_cast<std::size_t>(index);
        if (offsets_.size() <= i) {
            offsets_.resize(i + 1);
        }
        return offsets_[i];
    }

    AnswerHead head_;
    EventWriter writer_;
    std::shared_ptr<const text::Tokenizer> tokenizer_;
    std::vector<std::size_t> offsets_;  // characters of token texts so far, by choice
};

}  // namespace

std::unique_ptr<Presenter> make_completion_presenter(AnswerHead head, const GenerationOptions& options,
                                                     std::shared_ptr<const text::Tokenizer> tokenizer) {
    return std::make_unique<CompletionPresenter>(std::move(head), options, std::move(tokenizer));
}

}  // namespace megamoe::api
