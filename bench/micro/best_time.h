// The shortest time of many runs: on a shared machine the only figure that neighbours cannot lower.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace megamoe::bench {

// Runs `work` for `budget` seconds, three times at least, and returns the shortest run in seconds of wall time.
template <class Work>
double best_seconds(double budget, Work&& work) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    double best = std::numeric_limits<double>::infinity();
    for (int run = 0; run < 3 || std::chrono::duration<double>(Clock::now() - begin).count() < budget; ++run) {
        const auto start = Clock::now();
        work();
        best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
    return best;
}

}  // namespace megamoe::bench
