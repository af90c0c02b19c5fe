#include "frontend/api/reasoning_splitter.h"

#include <algorithm>
#include <utility>

namespace megamoe::api {
namespace {

constexpr std::string_view kEndTag = "</think>";

// Length of the longest end of `text` that could begin the tag.
std::size_t partial_tag(std::string_view text) {
    std::size_t length = std::min(text.size(), kEndTag.size() - 1);
    while (!kEndTag.starts_with(text.substr(text.size() - length))) {
        --length;
    }
    return length;
}

}  // namespace

ReasoningSplitter::Output ReasoningSplitter::push(std::string_view piece) {
    if (!inside_) {
        return {{}, std::string(piece)};
    }
    std::string text = std::exchange(held_, {});
    text += piece;
    const std::size_t tag = text.find(kEndTag);
    if (tag != std::string::npos) {
        inside_ = false;
        return {text.substr(0, tag), text.substr(tag + kEndTag.size())};
    }
    const std::size_t shown = text.size() - partial_tag(text);
    held_ = text.substr(shown);
    text.resize(shown);
    return {std::move(text), {}};
}

ReasoningSplitter::Output ReasoningSplitter::flush() {
    return {std::exchange(held_, {}), {}};
}

}  // namespace megamoe::api
