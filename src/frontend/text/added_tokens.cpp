#include "frontend/text/added_tokens.h"

#include <algorithm>

#include "base/check.h"

namespace megamoe::text {
namespace {

Regex compile_own(std::string_view pattern) {
    Result<Regex> regex = Regex::compile(pattern);
    MM_CHECK(regex, pattern);
    return std::move(regex).take();
}

bool is_continuation(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

std::string_view first_char(std::string_view text) {
    std::size_t size = std::min<std::size_t>(text.size(), 1);
    while (size < text.size() && is_continuation(text[size])) {
        ++size;
    }
    return text.substr(0, size);
}

std::string_view last_char(std::string_view text) {
    std::size_t begin = text.size();
    while (begin > 0 && is_continuation(text[--begin])) {
    }
    return text.substr(begin);
}

}  // namespace

void AddedTokenMatcher::Trie::add(std::string_view content, std::int32_t token) {
    std::size_t node = 0;
    for (const char byte : content) {
        const auto [edge, is_new] = nodes_[node].next.try_emplace(byte, nodes_.size());
        node = edge->second;
        if (is_new) {
            nodes_.emplace_back();
        }
    }
    nodes_[node].token = token;
}

std::int32_t AddedTokenMatcher::Trie::longest(std::string_view text) const {
    std::int32_t best = -1;
    std::size_t node = 0;
    for (const char byte : text) {
        const auto edge = nodes_[node].next.find(byte);
        if (edge == nodes_[node].next.end()) {
            break;
        }
        node = edge->second;
        if (nodes_[node].token >= 0) {
            best = nodes_[node].token;
        }
    }
    return best;
}

// \w of Hugging Face's matcher (Rust's regex), spelled out: three libraries, three meanings.
AddedTokenMatcher::AddedTokenMatcher(const std::vector<AddedToken>& tokens)
    : tokens_(tokens),
      word_(compile_own("[\\p{Alphabetic}\\p{L}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}]")),
      space_(compile_own("\\s")) {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        Trie& trie = tokens_[i].normalized ? normalized_ : plain_;
        trie.add(tokens_[i].content, static_cast<std::int32_t>(i));
    }
}

std::vector<Segment> AddedTokenMatcher::split(std::string_view text, std::span<const ByteRange> literal) const {
    std::vector<Segment> first;
    split_range(plain_, text, {0, text.size()}, literal, first);
    std::vector<Segment> segments;
    for (const Segment& segment : first) {
        if (segment.id >= 0) {
            segments.push_back(segment);
        } else {
            split_range(normalized_, text, segment.range, literal, segments);
        }
    }
    return segments;
}

void AddedTokenMatcher::split_range(const Trie& trie, std::string_view text, ByteRange range,
                                    std::span<const ByteRange> literal, std::vector<Segment>& out) const {
    const std::string_view sentence = text.substr(0, range.end).substr(range.begin);
    const auto emit_text = [&](std::size_t begin, std::size_t end) {
        if (begin < end) {
            out.push_back({-1, {range.begin + begin, range.begin + end}});
        }
    };
    auto guard = literal.begin();
    std::size_t done = 0;
    for (std::size_t at = 0; at < sentence.size();) {
        while (guard != literal.end() && guard->end <= range.begin + at) {
            ++guard;
        }
        std::size_t limit = sentence.size();
        if (guard != literal.end() && guard->begin < range.end) {
            if (guard->begin <= range.begin + at) {
                at = guard->end - range.begin;
                continue;
            }
            limit = guard->begin - range.begin;
        }
        const std::int32_t index = trie.longest(sentence.substr(0, limit).substr(at));
        if (index < 0) {
            ++at;
            continue;
        }
        const AddedToken& token = tokens_[static_cast<std::size_t>(index)];
        ByteRange match{at, at + token.content.size()};
        at = match.end;
        if (token.single_word && !stands_alone(sentence, match)) {
            continue;
        }
        // NOTE: the search goes on behind the token itself, so a token that is white space is found even in what
        // another one took along. Hugging Face's does the same.
        match = with_white_space(token, sentence, match);
        emit_text(done, match.begin);
        out.push_back({token.id, {range.begin + match.begin, range.begin + match.end}});
        done = match.end;
    }
    emit_text(done, sentence.size());
}

bool AddedTokenMatcher::stands_alone(std::string_view sentence, ByteRange match) const {
    const auto is_word = [this](std::string_view character) { return word_.find(character, 0).has_value(); };
    return !is_word(last_char(sentence.substr(0, match.begin))) && !is_word(first_char(sentence.substr(match.end)));
}

ByteRange AddedTokenMatcher::with_white_space(const AddedToken& token, std::string_view sentence,
                                              ByteRange match) const {
    const auto is_space = [this](std::string_view character) { return space_.find(character, 0).has_value(); };
    while (token.lstrip && is_space(last_char(sentence.substr(0, match.begin)))) {
        match.begin -= last_char(sentence.substr(0, match.begin)).size();
    }
    while (token.rstrip && is_space(first_char(sentence.substr(match.end)))) {
        match.end += first_char(sentence.substr(match.end)).size();
    }
    return match;
}

}  // namespace megamoe::text
