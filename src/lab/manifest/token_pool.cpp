#include "lab/manifest/token_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace megamoe::lab {
namespace {

// The length of the well-formed character at the front, 0 if there is none. Ranges as in table 3-7 of the Unicode
// standard.
std::size_t leading_char(std::string_view s) {
    const auto byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0U; };
    const auto is_tail = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
        return byte(i) >= low && byte(i) <= high;
    };
    const unsigned first = byte(0);
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xC2 && first <= 0xDF) {
        return is_tail(1) ? 2 : 0;
    }
    if (first >= 0xE0 && first <= 0xEF) {
        const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
        const unsigned high = first == 0xED ? 0x9F : 0xBF;
        return is_tail(1, low, high) && is_tail(2) ? 3 : 0;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        const unsigned low = first == 0xF0 ? 0x90 : 0x80;
        const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
        return is_tail(1, low, high) && is_tail(2) && is_tail(3) ? 4 : 0;
    }
    return 0;
}

bool is_usable(const TokenSource& tokens, std::uint32_t id, PromptFormat format) {
    if (tokens.is_special(id)) {
        return false;
    }
    const std::string text = tokens.decode({&id, 1});
    if (text.empty() || !is_clean_utf8(text)) {
        return false;
    }
    return format == PromptFormat::kIds || tokens.encode(text) == std::vector{id};
}

}  // namespace

bool is_clean_utf8(std::string_view bytes) {
    constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
    while (!bytes.empty()) {
        const std::size_t length = leading_char(bytes);
        if (length == 0 || bytes.substr(0, length) == kReplacement) {
            return false;
        }
        bytes.remove_prefix(length);
    }
    return true;
}

Result<TokenPool> TokenPool::make(const TokenSource& tokens, PromptFormat format, double zipf_alpha) {
    TokenPool pool;
    for (std::uint32_t id = 0; id < tokens.identity().vocab; ++id) {
        if (is_usable(tokens, id, format)) {
            pool.ids_.push_back(id);
        }
    }
    if (pool.ids_.size() < 16) {
        return Error{Errc::kFailedPrecondition,
                     fmt::format("tokenizer {} has only {} ids that can stand in a {} prompt", tokens.identity().name,
                                 pool.ids_.size(), to_string(format)),
                     "use --prompt-format ids, or another --tokenizer"};
    }
    if (zipf_alpha > 0) {
        // Neighbouring ids are alike; a fixed shuffle keeps the frequent ones from being of one kind.
        Rng rng = Rng::stream(0, "zipf_order", 0);
        shuffle(std::span(pool.ids_), rng);
        double sum = 0;
        for (std::size_t k = 1; k <= pool.ids_.size(); ++k) {
            sum += std::pow(static_cast<double>(k), -zipf_alpha);
            pool.cumulative_.push_back(sum);
        }
    }
    return pool;
}

std::uint32_t TokenPool::draw(Rng& rng) const {
    if (cumulative_.empty()) {
        return ids_[static_cast<std::size_t>(rng.below(ids_.size()))];
    }
    const double at = rng.real() * cumulative_.back();
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
    const auto index = static_cast<std::size_t>(found - cumulative_.begin());
    return ids_[std::min(index, ids_.size() - 1)];
}

}  // namespace megamoe::lab
