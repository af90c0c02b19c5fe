#include "frontend/text/regex_dialect.h"

#include <fmt/core.h>

#include <cstddef>

#include "frontend/text/generated/unicode_additions.h"

namespace megamoe::text {
namespace {

constexpr std::string_view kForeignEscapes = "wWbBhHRXKGyYOZ";

// Properties to which later versions of Unicode only add; C, the code points without a meaning, is none.
constexpr std::string_view kProperties =
    " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Alphabetic ";

class Translator {
  public:
    explicit Translator(std::string_view pattern) : pattern_(pattern) {}

    Result<std::string> run() && {
        while (at_ < pattern_.size()) {
            const char c = pattern_[at_];
            if (c == '\\' && at_ + 1 < pattern_.size()) {
                MM_TRY_DONE(translate_escape(pattern_[at_ + 1]));
                continue;
            }
            if (in_class_ && (c == '[' || pattern_.substr(at_, 2) == "&&")) {
                return refuse("a set operation inside a character class");
            }
            if (c == '[') {
                in_class_ = true;
            } else if (c == ']') {
                in_class_ = false;
            }
            out_ += c;
            ++at_;
        }
        return std::move(out_);
    }

  private:
    Error refuse(std::string_view what) const {
        return invalid(fmt::format("pattern \"{}\": {} is not supported", pattern_, what));
    }

    Result<Done> translate_escape(char escaped) {
        if (kForeignEscapes.find(escaped) != std::string_view::npos) {
            return refuse(pattern_.substr(at_, 2));
        }
        if (escaped == 'p' || escaped == 'P') {
            return translate_property(escaped == 'P');
        }
        if (escaped == 's' || escaped == 'S') {
            out_ += escaped == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
        } else {
            out_ += pattern_.substr(at_, 2);
        }
        at_ += 2;
        return Done{};
    }

    // \p{NAME} or \P{NAME}.
    Result<Done> translate_property(bool is_negated) {
        const std::size_t end = pattern_.find('}', at_);
        if (pattern_.substr(at_ + 2, 1) != "{" || end == std::string_view::npos) {
            return refuse("a property without braces");
        }
        const std::string_view property = pattern_.substr(at_, end + 1 - at_);
        const std::string_view name = property.substr(3, property.size() - 4);
        if (kProperties.find(fmt::format(" {} ", name)) == std::string_view::npos) {
            return refuse(property);
        }
        if (is_negated && in_class_) {
            return refuse(fmt::format("{} inside a character class", property));
        }
        std::string members = fmt::format("\\p{{{}}}", name);
        for (const UnicodeAddition& addition : kUnicodeAdditions) {
            if (addition.category.starts_with(name)) {
                members += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", addition.first, addition.last);
            }
        }
        out_ += in_class_ ? members : fmt::format("[{}{}]", is_negated ? "^" : "", members);
        at_ = end + 1;
        return Done{};
    }

    std::string_view pattern_;
    std::size_t at_ = 0;
    bool in_class_ = false;
    std::string out_;
};

}  // namespace

Result<std::string> to_pcre2(std::string_view pattern) {
    return Translator(pattern).run();
}

}  // namespace megamoe::text
