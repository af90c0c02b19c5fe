#include "base/workers.h"

#include <atomic>
#include <thread>
#include <vector>

#include "base/check.h"

namespace megamoe {

// A loop is open while the gate's upper half is odd. A helper takes part only if it registers while the loop is open,
// so the owner waits for helpers that are at work and never for one that the system has not woken yet.
struct Workers::Team {
    static constexpr std::uint64_t kStep = std::uint64_t{1} << 32;  // upper half: loops opened and closed
    static constexpr std::uint64_t kActive = kStep - 1;             // lower half: helpers at work

    std::atomic<std::uint64_t> gate{0};
    std::atomic<std::int64_t> next{0};  // next index to hand out
    std::atomic<bool> stop{false};
    std::int64_t count = 0;
    Call call = nullptr;
    void* object = nullptr;
    std::vector<std::thread> threads;

    static bool is_open(std::uint64_t gate_value) { return (gate_value & kStep) != 0; }

    void drain() {
        for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
            call(object, i);
        }
    }

    // A short spin covers the gaps between the ops of one step; past that the core belongs to others.
    std::uint64_t wait_for_change(std::uint64_t seen) {
        constexpr int kSpins = 2000;
        for (int i = 0; i < kSpins; ++i) {
            if (const std::uint64_t now = gate.load(std::memory_order_acquire); now != seen) {
                return now;
            }
            __builtin_ia32_pause();
        }
        gate.wait(seen, std::memory_order_acquire);
        return gate.load(std::memory_order_acquire);
    }

    void serve() {
        std::uint64_t seen = gate.load(std::memory_order_acquire);
        std::uint64_t done = ~std::uint64_t{0};  // the loop this helper has finished with
        while (!stop.load(std::memory_order_acquire)) {
            if (!is_open(seen) || (seen & ~kActive) == done) {
                seen = wait_for_change(seen);
                continue;
            }
            if (!gate.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) {
                continue;
            }
            done = seen & ~kActive;
            drain();
            seen = gate.fetch_sub(1, std::memory_order_acq_rel) - 1;
            gate.notify_all();
        }
    }
};

Workers::Workers(std::int32_t num_threads) : num_threads_(num_threads) {
    MM_CHECK(num_threads >= 1, "num_threads", num_threads);
    if (num_threads == 1) {
        return;
    }
    team_ = std::make_unique<Team>();
    for (std::int32_t i = 1; i < num_threads; ++i) {
        team_->threads.emplace_back([team = team_.get()] { team->serve(); });
    }
}

Workers::~Workers() {
    if (!team_) {
        return;
    }
    team_->stop.store(true, std::memory_order_release);
    team_->gate.fetch_add(2 * Team::kStep, std::memory_order_release);  // a change that opens nothing
    team_->gate.notify_all();
    for (auto& thread : team_->threads) {
        thread.join();
    }
}

void Workers::run_erased(std::int64_t count, Call call, void* object) {
    Team& team = *team_;
    team.count = count;
    team.call = call;
    team.object = object;
    team.next.store(0, std::memory_order_relaxed);
    team.gate.fetch_add(Team::kStep, std::memory_order_release);  // open
    team.gate.notify_all();
    team.drain();
    std::uint64_t now = team.gate.fetch_add(Team::kStep, std::memory_order_acq_rel) + Team::kStep;  // close
    while ((now & Team::kActive) != 0) {
        now = team.wait_for_change(now);
    }
}

}  // namespace megamoe
