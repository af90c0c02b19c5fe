#include "lab/cli/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/clock.h"

namespace megamoe::lab {
namespace {

constexpr std::int64_t kLogEveryNs = 10'000'000'000;

}  // namespace

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
    clear();
}

void ProgressLine::clear() {
    if (visible_) {
        std::fputs("\r\033[K", stderr);
        visible_ = false;
    }
}

void ProgressLine::show(std::string_view text) {
    if (quiet_) {
        return;
    }
    if (terminal_) {
        fmt::print(stderr, "\r\033[K{}", text);
        std::fflush(stderr);
        visible_ = true;
    } else if (const std::int64_t now = now_ns(); last_ns_ == 0 || now - last_ns_ >= kLogEveryNs) {
        last_ns_ = now;
        fmt::print(stderr, "{}\n", text);
    }
}

void ProgressLine::show(std::string_view phase, const Progress& p) {
    const double rate = p.elapsed_s > 0 ? static_cast<double>(p.output_tokens) / p.elapsed_s : 0;
    show(fmt::format("{}: {}/{} done{}, {} in flight, {:.0f} output tok/s, {:.0f} s", phase, p.finished, p.total,
                     p.failed > 0 ? fmt::format(" ({} failed)", p.failed) : "", p.in_flight, rate, p.elapsed_s));
}

}  // namespace megamoe::lab
