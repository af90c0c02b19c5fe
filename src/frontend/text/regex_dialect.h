// Regular expressions of `tokenizer.json` (Oniguruma, Ruby syntax) in PCRE2's words.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace megamoe::text {

// Two things differ in what the family's patterns use. \s is the property White_Space there; PCRE2's own has U+180E
// too. And the general categories follow Unicode 16; PCRE2 may be older (10.42: Unicode 14): what came since is added.
//
// In    pattern  UTF-8
// Error kInvalidArgument: the pattern uses what the two read differently, or what was not compared; the text names it
[[nodiscard]] Result<std::string> to_pcre2(std::string_view pattern);

}  // namespace megamoe::text
