#include "comm/rank_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "comm/futex.h"

namespace megamoe::comm {
namespace {

std::int32_t choose_spin(std::int32_t num_ranks, std::int32_t wanted) {
    if (wanted >= 0) {
        return wanted;
    }
    // A spinning rank that shares its core keeps the one it waits for from running.
    const bool core_each = static_cast<unsigned>(num_ranks) <= std::thread::hardware_concurrency();
    return core_each ? 1000 : 32;
}

}  // namespace

RankGroup::RankGroup(std::int32_t num_ranks, const RankGroupOptions& options)
    : num_ranks_(num_ranks),
      timeout_ms_(options.timeout_ms),
      spin_iterations_(choose_spin(num_ranks, options.spin_iterations)),
      members_(std::make_unique<Member[]>(static_cast<std::size_t>(num_ranks))) {
    MM_CHECK(num_ranks >= 1 && num_ranks <= kMaxRanks, "num_ranks", num_ranks);
    MM_CHECK(options.timeout_ms > 0, "timeout_ms", options.timeout_ms);
}

Result<Done> RankGroup::barrier(RankId me, CollectiveName name) {
    const std::uint32_t round = round_.load(std::memory_order_acquire);
    if ((round & kPoisonBit) != 0) {
        return poison_error();
    }
    Member& member = members_[static_cast<std::size_t>(raw(me))];
    member.at.store(name.text, std::memory_order_relaxed);
    member.calls.store(member.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);

    // Count and name travel in one word: the last rank sees whether all came to the same place.
    const std::uint64_t ticket = (name.hash << kCountBits) + 1;
    const std::uint64_t arrived = arrivals_.fetch_add(ticket, std::memory_order_acq_rel) + ticket;
    const auto count = static_cast<std::int32_t>(arrived & ((1U << kCountBits) - 1));
    if (count == num_ranks_) {
        if (arrived != ticket * static_cast<std::uint64_t>(num_ranks_)) {
            return fail(me, mismatch_error(me, name));
        }
        arrivals_.store(0, std::memory_order_relaxed);
        // Sequentially consistent with the sleeper's count and check: one of the two sides sees the other.
        round_.fetch_add(2, std::memory_order_seq_cst);
        if (round_sleepers_.load(std::memory_order_seq_cst) > 0) {
            futex_wake_all(round_);
        }
        return Done{};
    }
    return wait_round(me, name, round);
}

Result<Done> RankGroup::wait_round(RankId me, CollectiveName name, std::uint32_t round) {
    for (std::int32_t i = 0; i < spin_iterations_ && round_.load(std::memory_order_acquire) == round; ++i) {
        __builtin_ia32_pause();
    }
    if (round_.load(std::memory_order_acquire) == round) {
        const std::int64_t deadline = now_ns() + timeout_ms_ * 1'000'000;
        round_sleepers_.fetch_add(1, std::memory_order_seq_cst);
        while (round_.load(std::memory_order_seq_cst) == round && now_ns() < deadline) {
            futex_wait(round_, round, deadline);
        }
        round_sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }
    const std::uint32_t now = round_.load(std::memory_order_acquire);
    if ((now & kPoisonBit) != 0) {
        return poison_error();
    }
    return now == round ? Result<Done>(fail(me, timeout_error(me, name))) : Result<Done>(Done{});
}

Result<Done> RankGroup::all_gather(RankId me, CollectiveName name, std::span<const std::int64_t> mine,
                                   std::span<std::int64_t> all) {
    MM_CHECK(all.size() == mine.size() * static_cast<std::size_t>(num_ranks_), name.text, all.size(), mine.size());
    // Two buffers make one barrier enough: a rank writes this one again two rounds later, and it cannot get there
    // before everybody has entered the round between, that is, has finished reading here.
    const std::size_t parity = (round_.load(std::memory_order_acquire) >> 1) & 1;
    members_[static_cast<std::size_t>(raw(me))].sent[parity].assign(mine.begin(), mine.end());
    MM_TRY_DONE(barrier(me, name));
    for (std::int32_t r = 0; r < num_ranks_; ++r) {
        const std::vector<std::int64_t>& sent = members_[static_cast<std::size_t>(r)].sent[parity];
        if (sent.size() != mine.size()) {
            return fail(me, Error{Errc::kInternal,
                                  fmt::format("collective \"{}\": rank {} sent {} words, rank {} sent {}", name.text,
                                              raw(me), mine.size(), r, sent.size()),
                                  {}});
        }
        std::copy(sent.begin(), sent.end(), all.begin() + r * static_cast<std::ptrdiff_t>(mine.size()));
    }
    return Done{};
}

void RankGroup::poison(RankId who, const Error& why) {
    {
        const std::lock_guard lock(failure_mutex_);
        if (failure_) {
            return;
        }
        failure_ = Error{why.code, fmt::format("rank {}: {}", raw(who), why.what), why.hint};
    }
    round_.fetch_or(kPoisonBit, std::memory_order_seq_cst);
    futex_wake_all(round_);
    wake();
}

std::optional<Error> RankGroup::failure() const {
    const std::lock_guard lock(failure_mutex_);
    return failure_;
}

void RankGroup::wake() {
    wake_wave_.fetch_add(1, std::memory_order_release);
    futex_wake_all(wake_wave_);
}

Result<Done> RankGroup::wait_wake(std::uint32_t seen_wave) {
    while (!poisoned() && wake_wave() == seen_wave) {
        futex_wait(wake_wave_, seen_wave, kNoDeadline);
    }
    return poisoned() ? Result<Done>(poison_error()) : Result<Done>(Done{});
}

Error RankGroup::fail(RankId me, Error why) {
    poison(me, why);
    return why;
}

Error RankGroup::poison_error() const {
    const std::optional<Error> cause = failure();
    MM_CHECK(cause.has_value(), "poisoned without a cause");
    return Error{Errc::kUnavailable, cause->what, cause->hint};
}

Error RankGroup::timeout_error(RankId me, CollectiveName name) const {
    const std::uint64_t my_calls = members_[static_cast<std::size_t>(raw(me))].calls.load(std::memory_order_relaxed);
    std::vector<std::string> missing;
    for (std::int32_t r = 0; r < num_ranks_; ++r) {
        const Member& member = members_[static_cast<std::size_t>(r)];
        const std::uint64_t calls = member.calls.load(std::memory_order_relaxed);
        const char* at = member.at.load(std::memory_order_relaxed);
        if (calls < my_calls) {
            missing.push_back(at == nullptr
                                  ? fmt::format("rank {} (in no collective yet)", r)
                                  : fmt::format("rank {} (last in \"{}\", {} calls behind)", r, at, my_calls - calls));
        } else if (std::strcmp(at, name.text) != 0) {
            missing.push_back(fmt::format("rank {} (waits in \"{}\" instead)", r, at));
        }
    }
    return Error{Errc::kUnavailable,
                 fmt::format("collective \"{}\" timed out after {} ms; missing: {}", name.text, timeout_ms_,
                             fmt::join(missing, ", ")),
                 "look for the missing ranks' last log lines"};
}

Error RankGroup::mismatch_error(RankId me, CollectiveName name) const {
    std::vector<std::string> places;
    for (std::int32_t r = 0; r < num_ranks_; ++r) {
        places.push_back(fmt::format("rank {} in \"{}\"", r,
                                     members_[static_cast<std::size_t>(r)].at.load(std::memory_order_relaxed)));
    }
    return Error{Errc::kInternal,
                 fmt::format("ranks met in different collectives; rank {} came last to \"{}\": {}", raw(me), name.text,
                             fmt::join(places, ", ")),
                 {}};
}

}  // namespace megamoe::comm
