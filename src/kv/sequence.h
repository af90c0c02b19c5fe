// The cache of one running request: which pages hold it, which state slot, and how many tokens are in it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kv/page_allocator.h"

namespace megamoe::kv {

class Pools;

// How many pages of each group something needs.
struct PageNeed {
    std::int32_t token = 0;
    std::int32_t window = 0;
    friend bool operator==(const PageNeed&, const PageNeed&) = default;
};

// Move-only; gives everything back on destruction. `length` changes in commit() alone, after a forward really ran.
class Sequence {
  public:
    // An empty sequence with a state slot of its own, or nothing if all slots are taken.
    static std::optional<Sequence> open(Pools& pools);
    // Takes part in a forward for an idle rank: state slot 0 and page 0 of each group, length 0, owns nothing.
    static Sequence dummy(Pools& pools);

    std::int32_t length() const { return length_; }  // [n] tokens processed; the next one gets this position
    std::int32_t state_slot() const { return state_slot_; }

    // Page of positions [i*page_size, (i+1)*page_size); every position < n + q of the running step has one.
    std::span<const std::int32_t> token_pages() const { return token_.pages(); }
    // The same for the window group; 0 where all positions have left the window.
    std::span<const std::int32_t> window_pages() const { return window_.pages(); }

    // Pages that reserve(length) would take now.
    PageNeed need(std::int32_t length) const;
    // Room for positions < `length`, in both groups or in none (false).
    [[nodiscard]] bool reserve(std::int32_t length);
    // The positions below `length` are written. Window pages that no later query can see go back.
    void commit(std::int32_t length);

    const PageTable& token_table() const { return token_; }
    const PageTable& window_table() const { return window_; }
    const PageTable& state_table() const { return state_; }

  private:
    explicit Sequence(Pools& pools);

    std::int32_t page_size_;
    std::int32_t window_size_;
    std::int32_t length_ = 0;
    std::int32_t state_slot_ = 0;
    PageTable token_, window_, state_;
};

}  // namespace megamoe::kv
