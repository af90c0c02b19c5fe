#include "frontend/text/python_literals.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace megamoe::text {
namespace {

bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_prefix(std::string_view word) {
    return word.size() <= 2 && word.find_first_not_of("rRbBuUfF") == std::string_view::npos;
}

class Scanner {
  public:
    explicit Scanner(std::string_view source) : source_(source) {}

    std::vector<std::string> run() {
        while (at_ < source_.size()) {
            step();
        }
        end_group();
        return std::move(literals_);
    }

  private:
    void step() {
        const char c = source_[at_];
        if (is_name(c) || c == '"' || c == '\'') {
            read_word();
        } else if (c == '#') {
            at_ = std::min(source_.find('\n', at_), source_.size());
        } else if (c == '\\') {
            at_ += 2;  // a line goes on in the next
        } else {
            ++at_;
            if (c == '(' || c == '[' || c == '{') {
                ++depth_;
            } else if (c == ')' || c == ']' || c == '}') {
                --depth_;
            }
            const bool is_space = c == ' ' || c == '\t' || c == '\r' || (c == '\n' && depth_ > 0);
            if (!is_space) {
                end_group();
            }
        }
    }

    // A literal, with its prefix if any, or a name.
    void read_word() {
        const std::size_t begin = at_;
        while (at_ < source_.size() && is_name(source_[at_])) {
            ++at_;
        }
        const std::string_view word = source_.substr(begin, at_ - begin);
        const bool at_quote = at_ < source_.size() && (source_[at_] == '"' || source_[at_] == '\'');
        if (at_quote && is_prefix(word)) {
            group_ = group_.value_or("") + read_literal(word.find_first_of("rR") != std::string_view::npos);
        } else {
            end_group();
        }
    }

    std::string read_literal(bool is_raw) {
        const std::string quote(1, source_[at_]);
        const std::string triple = quote + quote + quote;
        const std::string close = starts_with(triple) ? triple : quote;
        at_ += close.size();
        std::string value;
        while (at_ < source_.size() && !starts_with(close)) {
            if (source_[at_] == '\\' && at_ + 1 < source_.size()) {
                value += read_escape(is_raw);
            } else {
                value += source_[at_++];
            }
        }
        at_ = std::min(at_ + close.size(), source_.size());
        return value;
    }

    std::string read_escape(bool is_raw) {
        constexpr std::string_view kEscaped = "ntr\\'\"";
        constexpr std::string_view kMeaning = "\n\t\r\\'\"";
        const char c = source_[at_ + 1];
        at_ += 2;
        if (const std::size_t which = kEscaped.find(c); !is_raw && which != std::string_view::npos) {
            return {kMeaning[which]};
        }
        return !is_raw && c == '\n' ? "" : std::string{'\\', c};
    }

    bool starts_with(std::string_view what) const { return source_.substr(at_, what.size()) == what; }

    void end_group() {
        if (group_) {
            literals_.push_back(*std::exchange(group_, std::nullopt));
        }
    }

    std::string_view source_;
    std::size_t at_ = 0;
    int depth_ = 0;                     // of brackets: inside them a line's end does not end a statement
    std::optional<std::string> group_;  // literals side by side so far
    std::vector<std::string> literals_;
};

}  // namespace

std::vector<std::string> python_string_literals(std::string_view source) {
    return Scanner(source).run();
}

}  // namespace megamoe::text
