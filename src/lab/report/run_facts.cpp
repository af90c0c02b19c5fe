#include "lab/report/run_facts.h"

#include <algorithm>

namespace megamoe::lab {
namespace {

// Spec  bench.md 8.6
constexpr double kMaxCpuShare = 0.7;
constexpr double kMaxLagMs = 2;

std::string quote(const std::string& word) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
        return word;
    }
    std::string quoted = "'";
    for (const char c : word) {
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return quoted + "'";
}

}  // namespace

RunChecks check_run(const Measured& run, const MeasureOptions& options) {
    const RunMetrics& metrics = run.metrics;
    const std::int64_t reachable =
        options.max_concurrency > 0 ? std::min<std::int64_t>(options.max_concurrency, options.num_prompts) : 0;
    const bool closed = !options.arrivals && !options.trace_arrivals;
    const bool chat = options.backend == Backend::kOpenaiChat;
    return {.complete = metrics.ok == options.num_prompts && run.warmup_failed == 0 && !run.pass.interrupted,
            .same_prompts = run.replay_matches,
            .lengths = metrics.counted_by_server && (chat || metrics.in_mismatch == 0),
            .concurrency = !closed || metrics.peak_concurrency >= reachable,
            .client_fast = run.pass.self.cpu_share <= kMaxCpuShare && run.pass.self.loop_lag_p99_ms <= kMaxLagMs};
}

std::string shell_quote(const std::vector<std::string>& argv) {
    std::string line;
    for (const std::string& word : argv) {
        line += (line.empty() ? "" : " ") + quote(word);
    }
    return line;
}

}  // namespace megamoe::lab
