// The shortest time of many runs: on a shared machine the only figure that neighbours cannot lower.
#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

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

// The same for `num_threads` threads that each call `work(thread)` at the same time: from the common start to the last
// end.
template <class Work>
double best_seconds_together(std::int32_t num_threads, double budget, Work&& work) {
    std::barrier gate(num_threads);
    bool done = false;  // written by the caller before the gate, read behind it
    std::vector<std::jthread> others;
    for (std::int32_t t = 1; t < num_threads; ++t) {
        others.emplace_back([&, t] {
            for (gate.arrive_and_wait(); !done; gate.arrive_and_wait()) {
                work(t);
                gate.arrive_and_wait();
            }
        });
    }
    const double best = best_seconds(budget, [&] {
        gate.arrive_and_wait();
        work(0);
        gate.arrive_and_wait();
    });
    done = true;
    gate.arrive_and_wait();
    return best;
}

}  // namespace megamoe::bench
