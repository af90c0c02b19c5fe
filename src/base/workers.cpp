#include "base/workers.h"

#include <atomic>
#include <thread>
#include <vector>

#include "base/check.h"

namespace megamoe {

struct Workers::Team {
    std::atomic<std::uint64_t> epoch{0};  // a new value = a new loop is ready
    std::atomic<std::int64_t> next{0};    // next index to hand out
    std::atomic<std::int32_t> busy{0};    // helpers that have not finished this loop
    std::atomic<bool> stop{false};
    std::int64_t count = 0;
    Call call = nullptr;
    void* object = nullptr;
    std::vector<std::thread> threads;

    void drain() {
        for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
            call(object, i);
        }
    }

    // A short spin covers the gaps between the ops of one step; past that the core belongs to others.
    template <class T>
    static void wait_while_equal(const std::atomic<T>& word, T old) {
        constexpr int kSpins = 2000;
        for (int i = 0; i < kSpins; ++i) {
            if (word.load(std::memory_order_acquire) != old) {
                return;
            }
            __builtin_ia32_pause();
        }
        word.wait(old, std::memory_order_acquire);
    }

    void serve() {
        std::uint64_t seen = 0;
        for (;;) {
            wait_while_equal(epoch, seen);
            seen = epoch.load(std::memory_order_acquire);
            if (stop.load(std::memory_order_acquire)) {
                return;
            }
            drain();
            if (busy.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                busy.notify_one();
            }
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
    team_->epoch.fetch_add(1, std::memory_order_release);
    team_->epoch.notify_all();
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
    team.busy.store(num_threads_ - 1, std::memory_order_relaxed);
    team.epoch.fetch_add(1, std::memory_order_release);
    team.epoch.notify_all();
    team.drain();
    for (std::int32_t left = team.busy.load(std::memory_order_acquire); left != 0;
         left = team.busy.load(std::memory_order_acquire)) {
        Team::wait_while_equal(team.busy, left);
    }
}

}  // namespace megamoe
