#include "comm/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace megamoe::comm {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t deadline_ns) {
    constexpr std::int64_t kNsPerSecond = 1'000'000'000;
    timespec deadline{};
    deadline.tv_sec = static_cast<time_t>(deadline_ns / kNsPerSecond);
    deadline.tv_nsec = static_cast<long>(deadline_ns % kNsPerSecond);
    // The BITSET form takes an absolute time of CLOCK_MONOTONIC, the clock behind now_ns().
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, value, deadline_ns == kNoDeadline ? nullptr : &deadline,
            nullptr, FUTEX_BITSET_MATCH_ANY);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace megamoe::comm
