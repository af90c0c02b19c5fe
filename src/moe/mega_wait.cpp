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

// Who gave up, and on whom, in the value of an abort cell.
struct Abort {
    std::int32_t who = 0;
    std::int32_t peer = 0;
    Edge edge{};
};

std::uint32_t encode(const Abort& a) {
    return static_cast<std::uint32_t>(a.who) | static_cast<std::uint32_t>(a.peer) << 8 |
           static_cast<std::uint32_t>(a.edge) << 16;
}

Abort decode_abort(std::uint32_t value) {
    return {static_cast<std::int32_t>(value & 0xFF), static_cast<std::int32_t>(value >> 8 & 0xFF),
            static_cast<Edge>(value >> 16)};
}

// The first reason stays: it is the one that explains the others.
void abort_all(const mega::RankView& view, std::int32_t num_ranks, mega::Epoch epoch, const Abort& why) {
    for (std::int32_t r = 0; r < num_ranks; ++r) {
        mega::Cell none = 0;
        std::atomic_ref(view.at<mega::Control>(r, 0)->abort)
            .compare_exchange_strong(none, mega::encode_cell(epoch, encode(why)), std::memory_order_release,
                                     std::memory_order_relaxed);
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
        // Of any launch: a peer that gave up on the last one will not come to this one either.
        const mega::Cell abort = std::atomic_ref(view.mine<mega::Control>(0)->abort).load(std::memory_order_acquire);
        if (abort != 0) {
            const Abort why = decode_abort(mega::cell_value(abort));
            record(view, mega::Status::kPeerAborted, edge, peer, epoch, seen);
            return Error{
                Errc::kUnavailable,
                fmt::format("rank {} gave up on launch {} of the MoE operator for want of {} from rank {}; "
                            "rank {} waited in launch {} for {} from rank {}",
                            why.who, abort >> 32, name(why.edge), why.peer, view.rank, epoch, name(edge), peer),
                fmt::format("rank {} is missing: look at its log", why.peer)};
        }
        if (context.group.poisoned()) {
            record(view, mega::Status::kPeerAborted, edge, peer, epoch, seen);
            const auto why = context.group.failure().value_or(Error{Errc::kUnavailable, "another rank failed", {}});
            return Error{Errc::kUnavailable, why.what, why.hint};
        }
        const std::int64_t waited_ms = (now_ns() - start) / 1'000'000;
        if (policy.timeout_ms > 0 && waited_ms > policy.timeout_ms) {
            record(view, mega::Status::kTimeout, edge, peer, epoch, seen);
            abort_all(view, context.size, epoch, {view.rank, peer, edge});
            return Error{
                Errc::kUnavailable,
                fmt::format("rank {} waited {} ms for {} from rank {} in launch {} of the MoE operator; the "
                            "last launch seen of it is {}",
                            view.rank, waited_ms, name(edge), peer, epoch, static_cast<std::uint32_t>(seen >> 32)),
                fmt::format("rank {} is missing: look at its log", peer)};
        }
    }
}

}  // namespace megamoe::moe
