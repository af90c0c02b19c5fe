// The ranks of one process, as threads that meet in named collectives. It knows how they wait, not what for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace megamoe::comm {

inline constexpr std::int32_t kMaxRanks = 64;

// The name of a collective: a string literal, hashed at compile time, so that a rank in the wrong place costs no extra
// memory traffic to detect.
struct CollectiveName {
    const char* text;
    std::uint64_t hash;  // FNV-1a

    consteval CollectiveName(const char* literal) : text(literal), hash(14695981039346656037U) {
        for (const char* c = literal; *c != '\0'; ++c) {
            hash = (hash ^ static_cast<unsigned char>(*c)) * 1099511628211U;
        }
    }
};

struct RankGroupOptions {
    std::int64_t timeout_ms = 60000;  // of one collective
    // Polls before a waiting rank sleeps; -1 = many when every rank can have a core of its own, else few.
    std::int32_t spin_iterations = -1;
};

// All ranks call the same collectives in the same order. A wait ends in one of four ways: everybody came; the time-out,
// whose error names the missing ranks and where each was last seen; ranks in different collectives, named likewise;
// poison. Each of the last three poisons the group, so every later or concurrent wait of any rank returns an error too.
class RankGroup {
  public:
    // `num_ranks` in [1, kMaxRanks]
    explicit RankGroup(std::int32_t num_ranks, const RankGroupOptions& options = {});
    RankGroup(const RankGroup&) = delete;
    RankGroup& operator=(const RankGroup&) = delete;

    std::int32_t size() const { return num_ranks_; }

    // Returns when every rank has called it; what a rank wrote before is visible to all ranks after.
    //
    // Error  kUnavailable: time-out or poison; kInternal: another rank is in another collective
    // Cost   one atomic add and one shared load a rank while the ranks arrive within the spin; no allocation
    // Thread the thread of rank `me`
    [[nodiscard]] Result<Done> barrier(RankId me, CollectiveName name);

    // all[r * mine.size() ...] = what rank r passed as `mine`.
    //
    // Error  as barrier; kInternal: lengths differ between ranks
    // Cost   one barrier and one copy
    [[nodiscard]] Result<Done> all_gather(RankId me, CollectiveName name, std::span<const std::int64_t> mine,
                                          std::span<std::int64_t> all);

    // Ends all waits of all ranks, now and later, with `why`; the first call wins. Thread: any.
    void poison(RankId who, const Error& why);
    bool poisoned() const { return (round_.load(std::memory_order_acquire) & kPoisonBit) != 0; }
    // The error that poisoned the group, with the rank that raised it in the text.
    std::optional<Error> failure() const;

    // The wake-up event of paused ranks, counted in waves. A rank reads wake_wave() before it looks for work;
    // wait_wake(w) then returns as soon as a wake() later than wave w has happened, even before the call.
    //
    // Error  kUnavailable: the group is poisoned. There is no time-out: a pause may last for ever.
    std::uint32_t wake_wave() const { return wake_wave_.load(std::memory_order_acquire); }
    void wake();
    [[nodiscard]] Result<Done> wait_wake(std::uint32_t seen_wave);

  private:
    // What one rank shows the others. Written by its own thread only.
    struct alignas(64) Member {
        std::atomic<const char*> at = nullptr;          // the collective it entered last
        std::atomic<std::uint64_t> calls = 0;           // collectives entered
        std::array<std::vector<std::int64_t>, 2> sent;  // by parity of the round
    };

    static constexpr std::uint32_t kPoisonBit = 1;  // of round_; a round counts 2
    static constexpr int kCountBits = 8;            // of arrivals_; the rest sums the name hashes

    Result<Done> wait_round(RankId me, CollectiveName name, std::uint32_t round);
    Error fail(RankId me, Error why);
    Error poison_error() const;
    Error timeout_error(RankId me, CollectiveName name) const;
    Error mismatch_error(RankId me, CollectiveName name) const;

    const std::int32_t num_ranks_;
    const std::int64_t timeout_ms_;
    const std::int32_t spin_iterations_;
    std::unique_ptr<Member[]> members_;
    alignas(64) std::atomic<std::uint64_t> arrivals_ = 0;
    alignas(64) std::atomic<std::uint32_t> round_ = 0;
    std::atomic<std::int32_t> round_sleepers_ = 0;
    alignas(64) std::atomic<std::uint32_t> wake_wave_ = 0;
    mutable std::mutex failure_mutex_;
    std::optional<Error> failure_;
};

class SymmetricHeap;

// A rank's place in the group; passed explicitly to whatever meets other ranks.
struct RankContext {
    RankId rank{};
    std::int32_t size = 1;
    RankGroup& group;
    SymmetricHeap& heap;

    [[nodiscard]] Result<Done> barrier(CollectiveName name) const { return group.barrier(rank, name); }
    [[nodiscard]] Result<Done> all_gather(CollectiveName name, std::span<const std::int64_t> mine,
                                          std::span<std::int64_t> all) const {
        return group.all_gather(rank, name, mine, all);
    }
};

}  // namespace megamoe::comm
