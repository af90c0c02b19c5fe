// Sleeping on a 32-bit word with a deadline, which std::atomic::wait cannot do.
#pragma once

#include <atomic>
#include <cstdint>

namespace megamoe::comm {

inline constexpr std::int64_t kNoDeadline = -1;

// Sleeps while `word` holds `value`, at most until now_ns() reaches `deadline_ns`. May return early: look again.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t deadline_ns);
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace megamoe::comm
