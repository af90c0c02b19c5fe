// A compiled Unicode regular expression in the dialect of `tokenizer.json` (Oniguruma, Ruby syntax), run by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "frontend/text/byte_range.h"

namespace megamoe::text {

class Regex {
  public:
    // Error kInvalidArgument: not a valid pattern, it can match the empty text, or to_pcre2 refuses it
    static Result<Regex> compile(std::string_view pattern);
    // A pattern that matches exactly `text`, which is not empty.
    static Result<Regex> compile_literal(std::string_view text);

    // The first match at or behind `from`; it is never empty.
    //
    // In    subject  valid UTF-8, `from` at a character's start; look-behind sees the text before `from`
    // Thread  any
    std::optional<ByteRange> find(std::string_view subject, std::size_t from) const;

  private:
    struct Code;
    explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}

    static Result<Regex> compile(std::string_view pattern, bool literal);

    std::shared_ptr<const Code> code_;
};

}  // namespace megamoe::text
