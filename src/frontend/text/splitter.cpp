#include "frontend/text/splitter.h"

#include <string>

namespace megamoe::text {

void Splitter::run_from(std::size_t step, std::string_view text, const Emit& emit) const {
    if (text.empty()) {
        return;
    }
    if (step == steps_.size()) {
        emit(text);
    } else if (const Regex* regex = std::get_if<Regex>(&steps_[step])) {
        cut(*regex, step + 1, text, emit);
    } else if (text.front() == ' ') {
        run_from(step + 1, text, emit);
    } else {
        run_from(step + 1, " " + std::string(text), emit);
    }
}

void Splitter::cut(const Regex& regex, std::size_t next_step, std::string_view text, const Emit& emit) const {
    std::size_t done = 0;
    while (const auto match = regex.find(text, done)) {
        run_from(next_step, text.substr(done, match->begin - done), emit);
        run_from(next_step, text.substr(match->begin, match->end - match->begin), emit);
        done = match->end;
    }
    run_from(next_step, text.substr(done), emit);
}

}  // namespace megamoe::text
