#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "frontend/api/presenter_json.h"
#include "frontend/http/sse.h"

namespace megamoe::api {
namespace {

using engine::FinishReason;

// The native form. Its stream events are cumulative: each repeats the text and the ids so far.
class GeneratePresenter final : public Presenter {
  public:
    GeneratePresenter(AnswerHead head, bool is_list, bool logprob_texts, const GenerationOptions& options,
                      std::shared_ptr<const text::Tokenizer> tokenizer)
        : head_(std::move(head)),
          is_list_(is_list),
          logprob_texts_(logprob_texts),
          wants_scores_(options.sampling.num_logprobs >= 0),
          wants_best_(options.sampling.num_logprobs > 0),
          tokenizer_(std::move(tokenizer)) {}

    void add_events(const ChoiceView& view, std::string& out) override {
        Json event = item(view);
        if (is_list_) {
            event["index"] = view.index;
        }
        out += http::sse_event(dump(event));
    }

    void add_tail(const Usage&, std::string&) override {}

    std::string whole(std::span<const ChoiceView> views, const Usage&) override {
        Json items = Json::array();
        for (const ChoiceView& view : views) {
            items.push_back(item(view));
        }
        return dump(is_list_ ? items : items.at(0));
    }

  private:
    // What was shown of one choice before.
    struct Shown {
        std::string text;
        std::vector<std::int32_t> ids;
        Json scores = Json::array();
        Json best = Json::array();
    };

    Json item(const ChoiceView& view) {
        Shown& shown = accumulate(view);
        Json meta{{"id", is_list_ ? fmt::format("{}-{}", head_.id, view.index) : head_.id},
                  {"finish_reason", finish(view)},
                  {"prompt_tokens", view.usage.prompt_tokens},
                  {"completion_tokens", view.usage.completion_tokens},
                  {"cached_tokens", 0},
                  {"e2e_latency", view.elapsed_seconds}};
        if (wants_scores_) {
            meta["output_token_logprobs"] = shown.scores;
        }
        if (wants_best_) {
            meta["output_top_logprobs"] = shown.best;
        }
        return {{"text", shown.text}, {"output_ids", shown.ids}, {"meta_info", std::move(meta)}};
    }

    Shown& accumulate(const ChoiceView& view) {
        const auto i = static_cast<std::size_t>(view.index);
        if (shown_.size() <= i) {
            shown_.resize(i + 1);
        }
        Shown& shown = shown_[i];
        shown.text += view.delta.reasoning + view.delta.content;
        shown.ids.insert(shown.ids.end(), view.delta.tokens.begin(), view.delta.tokens.end());
        for (const ScoredToken& score : view.delta.scores) {
            shown.scores.push_back(row(score.token, score.logprob));
            Json best = Json::array();
            for (const engine::TokenLogprob& other : score.best) {
                best.push_back(row(other.token, other.logprob));
            }
            shown.best.push_back(std::move(best));
        }
        return shown;
    }

    // [logprob, id, text or null]
    Json row(std::int32_t token, float logprob) const {
        return Json::array({logprob, token, logprob_texts_ ? Json(token_text(*tokenizer_, token)) : Json()});
    }

    static Json finish(const ChoiceView& view) {
        switch (view.finish) {
            case FinishReason::kStop:
                return {{"type", "stop"}, {"matched", matched_value(view.matched)}};
            case FinishReason::kLength:
                return {{"type", "length"}, {"length", view.usage.completion_tokens}};
            case FinishReason::kAbort:
                return {{"type", "abort"}, {"message", "the request was aborted"}};
            case FinishReason::kNone:
            case FinishReason::kError:
                break;
        }
        return nullptr;
    }

    AnswerHead head_;
    bool is_list_;
    bool logprob_texts_;
    bool wants_scores_;
    bool wants_best_;
    std::shared_ptr<const text::Tokenizer> tokenizer_;
    std::vector<Shown> shown_;
};

class ProbePresenter final : public Presenter {
  public:
    void add_events(const ChoiceView&, std::string&) override {}
    void add_tail(const Usage&, std::string&) override {}
    std::string whole(std::span<const ChoiceView>, const Usage&) override { return R"({"status":"ok"})"; }
};

}  // namespace

std::unique_ptr<Presenter> make_generate_presenter(AnswerHead head, bool is_list, bool logprob_texts,
                                                   const GenerationOptions& options,
                                                   std::shared_ptr<const text::Tokenizer> tokenizer) {
    return std::make_unique<GeneratePresenter>(std::move(head), is_list, logprob_texts, options, std::move(tokenizer));
}

std::unique_ptr<Presenter> make_probe_presenter() {
    return std::make_unique<ProbePresenter>();
}

}  // namespace megamoe::api
