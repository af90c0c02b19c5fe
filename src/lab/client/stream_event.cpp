#include "lab/client/stream_event.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace megamoe::lab {
namespace {

enum class Key : std::uint8_t {
    kOther,
    kChoices,
    kDelta,
    kMessage,
    kText,
    kContent,
    kReasoning,
    kToolCalls,
    kFunction,
    kName,
    kArguments,
    kUsage,
    kMetaInfo,
    kPromptTokens,
    kCompletionTokens,
    kDetails,
    kCachedTokens,
    kFinishReason,
    kType,
    kError,
};

constexpr std::array<std::pair<std::string_view, Key>, 20> kKeys{{{"choices", Key::kChoices},
                                                                  {"delta", Key::kDelta},
                                                                  {"message", Key::kMessage},
                                                                  {"text", Key::kText},
                                                                  {"content", Key::kContent},
                                                                  {"reasoning_content", Key::kReasoning},
                                                                  {"reasoning", Key::kReasoning},
                                                                  {"tool_calls", Key::kToolCalls},
                                                                  {"function", Key::kFunction},
                                                                  {"name", Key::kName},
                                                                  {"arguments", Key::kArguments},
                                                                  {"usage", Key::kUsage},
                                                                  {"meta_info", Key::kMetaInfo},
                                                                  {"prompt_tokens", Key::kPromptTokens},
                                                                  {"completion_tokens", Key::kCompletionTokens},
                                                                  {"prompt_tokens_details", Key::kDetails},
                                                                  {"cached_tokens", Key::kCachedTokens},
                                                                  {"finish_reason", Key::kFinishReason},
                                                                  {"type", Key::kType},
                                                                  {"error", Key::kError}}};

Key key_of(std::string_view name) {
    for (const auto& [known, key] : kKeys) {
        if (name == known) {
            return key;
        }
    }
    return Key::kOther;
}

// Follows the parser through the document; `inside_.back()` is the key of the object or array around the value at hand
// (the objects of an array count as being inside the array's key).
class EventReader final : public nlohmann::json_sax<nlohmann::json> {
  public:
    StreamEvent take() { return std::move(event_); }

    bool start_object(std::size_t) override {
        event_.has_choice = event_.has_choice || (!inside_.empty() && inside_.back() == Key::kChoices);
        return enter();
    }
    bool start_array(std::size_t) override { return enter(); }
    bool end_object() override { return leave(); }
    bool end_array() override { return leave(); }
    bool key(string_t& name) override {
        key_ = key_of(name);
        return true;
    }

    bool string(string_t& value) override {
        const Key around = inside_.empty() ? Key::kOther : inside_.back();
        const bool top = inside_.size() == 1;
        if (is_generated_text(around)) {
            event_.text += value;
        } else if (top && key_ == Key::kText) {
            event_.whole_text = std::move(value);
            event_.has_choice = true;
        } else if (key_ == Key::kFinishReason || (around == Key::kFinishReason && key_ == Key::kType)) {
            event_.finish_reason = std::move(value);
        } else if ((top && key_ == Key::kError) || (around == Key::kError && key_ == Key::kMessage)) {
            event_.error = std::move(value);
        } else if (top && key_ == Key::kMessage) {
            top_message_ = std::move(value);
        } else if (top && value == "error") {
            is_error_object_ = true;  // {"object":"error","message":...}
        }
        return finish_error();
    }

    bool number_unsigned(number_unsigned_t value) override {
        const Key around = inside_.empty() ? Key::kOther : inside_.back();
        const auto count = static_cast<std::uint32_t>(value);
        if (key_ == Key::kCachedTokens && (around == Key::kDetails || around == Key::kMetaInfo)) {
            event_.cached_tokens = count;
        } else if (around != Key::kUsage && around != Key::kMetaInfo) {
            return true;
        } else if (key_ == Key::kPromptTokens) {
            event_.prompt_tokens = count;
        } else if (key_ == Key::kCompletionTokens) {
            event_.completion_tokens = count;
        }
        return true;
    }

    bool number_integer(number_integer_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  private:
    bool is_generated_text(Key around) const {
        switch (key_) {
            case Key::kText:
                return around == Key::kChoices;
            case Key::kContent:
            case Key::kReasoning:
                return around == Key::kDelta || around == Key::kMessage;
            case Key::kName:
            case Key::kArguments:
                return around == Key::kFunction;
            default:
                return false;
        }
    }

    bool enter() {
        inside_.push_back(key_);
        if (inside_.size() == 2 && key_ == Key::kError && event_.error.empty()) {
            event_.error = "error without a message";
        }
        return true;
    }
    bool leave() {
        inside_.pop_back();
        key_ = inside_.empty() ? Key::kOther : inside_.back();
        return true;
    }
    bool finish_error() {
        if (is_error_object_ && event_.error.empty()) {
            event_.error = top_message_;
        }
        return true;
    }

    StreamEvent event_;
    std::vector<Key> inside_;
    Key key_ = Key::kOther;
    std::string top_message_;
    bool is_error_object_ = false;
};

}  // namespace

Result<StreamEvent> parse_stream_event(std::string_view data) {
    if (data == "[DONE]") {
        StreamEvent event;
        event.done = true;
        return event;
    }
    EventReader reader;
    if (!nlohmann::json::sax_parse(data, &reader)) {
        return invalid("not JSON: " + std::string(data.substr(0, 200)));
    }
    return reader.take();
}

}  // namespace megamoe::lab
