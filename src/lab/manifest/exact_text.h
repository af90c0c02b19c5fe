// Text that a tokenizer splits into exactly n tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/manifest/token_source.h"

namespace megamoe::lab {

struct ExactText {
    std::string text;
    std::vector<std::uint32_t> ids;  // encode(text)
};

// Decode and encode are not inverse: ids that stand side by side merge to others when their text is encoded again. So:
// decode, encode, cut or fill at the end, and again, until the count is right.
//
// In    ids       a first try, usually num_tokens long
//       next_id   fills up when the text came out short
// Out   none when ten rounds were not enough; the caller draws other ids
// Spec  bench.md 4.3
std::optional<ExactText> exact_text(const TokenSource& tokens, std::vector<std::uint32_t> ids, std::size_t num_tokens,
                                    const std::function<std::uint32_t()>& next_id);

}  // namespace megamoe::lab
