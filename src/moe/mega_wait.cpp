#include "moe/mega_wait.h"

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "base/clock.h"

namespace megamoe::moe {
namespace {

const char* name(Edge edge) {
    return edge == Edge::kCounts ? "row counts" : "returned rows";
}

void abort_all(const mega::RankView& view, std::int32_t num_ranks, mega::Epoch epoch) {
    for (std::int32_t r = 0; r < num_ranks; ++r) {
        publish(&view.at<mega::Control>(r, 0)->abort, epoch, static_cast<std::uint32_t>(view.rank) + 1);
    }
}

void record(const mega::RankView& view, mega::Status status, Edge edge, std::int32_t peer, mega::Epoch epoch,
            mega::Cell seen) {
    auto* control = view.mine<mega::Control>(0);
    std::atomic_ref status_word(control->status);
    if (status_word.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(mega::Status::kOk)) {
        return;
    }
    control->detail[0] = static_cast<std::uint32_t>(edge);
    control->detail[1] = static_cast<std::uint32_t>(peer);
    control->detail[2] = epoch;
    control->detail[3] = static_cast<std::uint32_t>(seen >> 32);
    status_word.store(static_cast<std::uint32_t>(status), std::memory_order_release);
}

}  // namespace

Result<std::uint32_t> wait_cell(const comm::RankContext& context, const mega::RankView& view, const WaitPolicy& policy,
                                mega::Cell* cell, mega::Epoch epoch, Edge edge, std::int32_t peer) {
    constexpr int kSpins = 500;
    for (int i = 0; i < kSpins; ++i) {
        if (const auto value = try_read(cell, epoch)) {
            return *value;
        }
        __builtin_ia32_pause();
    }
    const std::int64_t start = now_ns();
    for (;;) {
        for (int i = 0; i < 16; ++i) {
            if (const auto value = try_read(cell, epoch)) {
                return *value;
            }
            std::this_thread::yield();
        }
        const mega::Cell seen = std::atomic_ref<mega::Cell>(*cell).load(std::memory_order_relaxed);
        if (const auto who = try_read(&view.mine<mega::Control>(0)->abort, epoch)) {
            record(view, mega::Status::kPeerAborted, edge, peer, epoch, seen);
            return Error{
                Errc::kUnavailable,
                fmt::format("rank {} gave up on launch {} of the MoE operator while rank {} waited for {} from "
                            "rank {}",
                            *who - 1, epoch, view.rank, name(edge), peer),
                "look for the first error in that rank's log"};
        }
        if (context.group.poisoned()) {
            return context.group.failure().value_or(Error{Errc::kUnavailable, "another rank failed", {}});
        }
        const std::int64_t waited_ms = (now_ns() - start) / 1'000'000;
        if (policy.timeout_ms > 0 && waited_ms > policy.timeout_ms) {
            record(view, mega::Status::kTimeout, edge, peer, epoch, seen);
            abort_all(view, context.size, epoch);
            return Error{
                Errc::kUnavailable,
                fmt::format("rank {} waited {} ms for {} from rank {} in launch {} of the MoE operator; the "
                            "last launch seen of it is {}",
                            view.rank, waited_ms, name(edge), peer, epoch, static_cast<std::uint32_t>(seen >> 32)),
                "rank " + std::to_string(peer) + " is missing: look at its log"};
        }
    }
}

}  // namespace megamoe::moe
