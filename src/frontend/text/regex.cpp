#include "frontend/text/regex.h"

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "base/check.h"
#include "frontend/text/regex_dialect.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace megamoe::text {
namespace {

PCRE2_SPTR units(std::string_view text) {
    return reinterpret_cast<PCRE2_SPTR>(text.data());
}

// What each thread needs to run a match. One pair of offsets: only the whole match is asked for.
struct MatchState {
    MatchState() : data(pcre2_match_data_create(1, nullptr)), context(pcre2_match_context_create(nullptr)) {
        MM_CHECK(data != nullptr && context != nullptr, "out of memory");
        // A limit would make long runs of one character fail; the patterns backtrack at most once over a run.
        pcre2_set_match_limit(context, std::numeric_limits<std::uint32_t>::max());
    }
    ~MatchState() {
        pcre2_match_context_free(context);
        pcre2_match_data_free(data);
    }
    MatchState(const MatchState&) = delete;
    MatchState& operator=(const MatchState&) = delete;

    pcre2_match_data* data;
    pcre2_match_context* context;
};

}  // namespace

struct Regex::Code {
    explicit Code(pcre2_code* compiled) : code(compiled) {}
    ~Code() { pcre2_code_free(code); }
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;

    pcre2_code* code;
};

Result<Regex> Regex::compile(std::string_view pattern) {
    MM_TRY(const std::string translated, to_pcre2(pattern));
    return compile(translated, /*literal=*/false);
}

Result<Regex> Regex::compile_literal(std::string_view text) {
    return compile(text, /*literal=*/true);
}

Result<Regex> Regex::compile(std::string_view pattern, bool literal) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    const std::uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP);
    pcre2_code* compiled = pcre2_compile(units(pattern), pattern.size(), options, &error, &offset, nullptr);
    if (compiled == nullptr) {
        std::array<char, 256> message{};
        pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(message.data()), message.size());
        return invalid(fmt::format("pattern \"{}\", byte {}: {}", pattern, offset, message.data()));
    }
    auto code = std::make_shared<const Code>(compiled);
    std::uint32_t matches_empty = 0;
    pcre2_pattern_info(compiled, PCRE2_INFO_MATCHEMPTY, &matches_empty);
    if (matches_empty != 0) {
        return invalid(fmt::format("pattern \"{}\" can match the empty text", pattern));
    }
    // Without executable memory the interpreter does the same work, slower.
    pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    return Regex(std::move(code));
}

std::optional<ByteRange> Regex::find(std::string_view subject, std::size_t from) const {
    thread_local const MatchState state;
    const auto match = [&](std::uint32_t options) {
        return pcre2_match(code_->code, units(subject), subject.size(), from, options | PCRE2_NO_UTF_CHECK, state.data,
                           state.context);
    };
    int count = match(0);
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) {
        count = match(PCRE2_NO_JIT);  // its stack is the heap
    }
    if (count == PCRE2_ERROR_NOMATCH) {
        return std::nullopt;
    }
    MM_CHECK(count >= 0, "pcre2_match", count);
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(state.data);
    return ByteRange{offsets[0], offsets[1]};
}

}  // namespace megamoe::text
