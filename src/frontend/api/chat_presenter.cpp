#include <set>
#include <utility>

#include "frontend/api/presenter_json.h"

namespace megamoe::api {
namespace {

Json byte_list(std::string_view bytes) {
    Json list = Json::array();
    for (const char byte : bytes) {
        list.push_back(static_cast<unsigned char>(byte));
    }
    return list;
}

class ChatPresenter final : public Presenter {
  public:
    ChatPresenter(AnswerHead head, const GenerationOptions& options, std::shared_ptr<const text::Tokenizer> tokenizer)
        : head_(std::move(head)), writer_(head_, "chat.completion.chunk", options), tokenizer_(std::move(tokenizer)) {}

    void add_events(const ChoiceView& view, std::string& out) override {
        const auto add = [&](Json delta, Json logprobs, const ChoiceView* end) {
            Json choice{{"index", view.index}, {"delta", std::move(delta)}, {"logprobs", std::move(logprobs)}};
            choice["finish_reason"] = end != nullptr ? finish_word(end->finish) : Json();
            if (end != nullptr) {
                choice["matched_stop"] = matched_value(end->matched);
            }
            writer_.add(choice, view.usage, out);
        };
        const bool ends = view.finish != engine::FinishReason::kNone;
        if (opened_.insert(view.index).second) {
            add({{"role", "assistant"}, {"content", ""}}, nullptr, nullptr);
        }
        Json logprobs = view.delta.scores.empty() ? Json() : logprobs_of(view.delta);
        if (!view.delta.reasoning.empty()) {
            add({{"reasoning_content", view.delta.reasoning}}, std::exchange(logprobs, nullptr), nullptr);
        }
        // A token that shows no text yet still makes an event, so that clients can count and time tokens.
        const bool silent = view.delta.reasoning.empty() && (!ends || !logprobs.is_null());
        if (!view.delta.content.empty() || silent) {
            add({{"content", view.delta.content}}, std::move(logprobs), nullptr);
        }
        if (ends) {
            add(Json::object(), nullptr, &view);
        }
    }

    void add_tail(const Usage& total, std::string& out) override { writer_.add_usage(total, out); }

    std::string whole(std::span<const ChoiceView> views, const Usage& total) override {
        Json choices = Json::array();
        for (const ChoiceView& view : views) {
            Json message{{"role", "assistant"}, {"content", view.delta.content}};
            if (!view.delta.reasoning.empty()) {
                message["reasoning_content"] = view.delta.reasoning;
            }
            choices.push_back({{"index", view.index},
                               {"message", std::move(message)},
                               {"logprobs", view.delta.scores.empty() ? Json() : logprobs_of(view.delta)},
                               {"finish_reason", finish_word(view.finish)},
                               {"matched_stop", matched_value(view.matched)}});
        }
        return whole_answer(head_, "chat.completion", std::move(choices), total);
    }

  private:
    Json token_entry(std::int32_t token, float logprob) const {
        return {{"token", token_text(*tokenizer_, token)},
                {"logprob", logprob},
                {"bytes", byte_list(tokenizer_->token_bytes(token))}};
    }

    Json logprobs_of(const Delta& delta) const {
        Json content = Json::array();
        for (const ScoredToken& score : delta.scores) {
            Json best = Json::array();
            for (const engine::TokenLogprob& other : score.best) {
                best.push_back(token_entry(other.token, other.logprob));
            }
            Json entry = token_entry(score.token, score.logprob);
            entry["top_logprobs"] = std::move(best);
            content.push_back(std::move(entry));
        }
        return {{"content", std::move(content)}};
    }

    AnswerHead head_;
    EventWriter writer_;
    std::shared_ptr<const text::Tokenizer> tokenizer_;
    std::set<std::int32_t> opened_;  // choices whose role is sent
};

}  // namespace

std::unique_ptr<Presenter> make_chat_presenter(AnswerHead head, const GenerationOptions& options,
                                               std::shared_ptr<const text::Tokenizer> tokenizer) {
    return std::make_unique<ChatPresenter>(std::move(head), options, std::move(tokenizer));
}

}  // namespace megamoe::api
