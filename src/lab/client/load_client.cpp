#include "lab/client/load_client.h"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <ctime>
#include <deque>
#include <exception>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "lab/client/stream_slot.h"
#include "lab/core/interrupt.h"

namespace megamoe::lab {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kTickNs = 10 * kMs;
constexpr std::int64_t kTicksPerSweep = 10;
constexpr std::int64_t kTicksPerReport = 100;
constexpr std::int64_t kGraceNs = 5000 * kMs;
constexpr std::int64_t kRequestsBeforeGivingUp = 32;

// An exception out of a coroutine of ours would be a bug; let it reach run() instead of vanishing.
constexpr auto kRethrow = [](std::exception_ptr thrown) {
    if (thrown) {
        std::rethrow_exception(thrown);
    }
};

std::chrono::steady_clock::time_point time_point(std::int64_t t_ns) {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(t_ns));
}

std::int64_t thread_cpu_ns() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

rusage usage_of_thread() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage;
}

}  // namespace

struct LoadClient::State {
    asio::io_context io{1};
    Target target;
    std::string endpoint;
    tcp::endpoint peer;
    std::deque<StreamSlot> slots;  // never moved: coroutines refer to them
};

namespace {

// One pass: which row is next, which slot is free, when it is over.
class Pass {
  public:
    Pass(asio::io_context& io, std::deque<StreamSlot>& slots, const tcp::endpoint& peer, const Target& target,
         const std::string& endpoint, const std::vector<PlannedRequest>& requests, const PassOptions& options)
        : io_(io),
          slots_(slots),
          peer_(peer),
          target_(target),
          endpoint_(endpoint),
          requests_(requests),
          options_(options),
          ticker_(io),
          releaser_(io) {
        result_.records.resize(requests.size());
        for (std::size_t i = 0; i < requests.size(); ++i) {
            RequestRecord& record = result_.records[i];
            record.id = requests[i].id;
            record.measured = requests[i].measured;
            record.index = static_cast<std::int64_t>(i);
            record.asked_in = requests[i].asked_in;
            record.asked_out = requests[i].asked_out;
        }
        const std::size_t bound = static_cast<std::size_t>(std::max(options.max_concurrency, 0));
        max_slots_ = bound == 0 ? requests.size() : std::min(bound, requests.size());
        for (StreamSlot& slot : slots_) {
            idle_.push_back(&slot);
        }
    }

    PassResult run() {
        const std::int64_t cpu_begin = thread_cpu_ns();
        const rusage usage_begin = usage_of_thread();
        result_.t_begin_ns = now_ns();
        if (!requests_.empty()) {
            asio::co_spawn(io_, release_rows(), kRethrow);
            asio::co_spawn(io_, tick(), kRethrow);
            io_.restart();
            io_.run();
        }
        result_.t_end_ns = now_ns();
        check_self(cpu_begin, usage_begin);
        return std::move(result_);
    }

  private:
    bool over() const { return running_ == 0 && (stopping_ || next_ == requests_.size()); }

    std::optional<std::size_t> take_row() {
        return !stopping_ && next_ < released_ ? std::optional(next_++) : std::nullopt;
    }

    // Puts free slots to work while rows are released.
    void pump(std::int64_t now) {
        while (!stopping_ && next_ < released_ && running_ < max_slots_) {
            if (idle_.empty()) {
                idle_.push_back(&slots_.emplace_back(io_, peer_));
            }
            StreamSlot* slot = idle_.back();
            idle_.pop_back();
            ++running_;
            asio::co_spawn(io_, work(*slot, now), kRethrow);
        }
        if (over()) {
            ticker_.cancel();
            releaser_.cancel();
        }
    }

    // Serves rows on one slot until none is released.
    asio::awaitable<void> work(StreamSlot& slot, std::int64_t free_since) {
        for (std::optional<std::size_t> row = take_row(); row; row = take_row()) {
            RequestRecord& record = result_.records[*row];
            record.t_sched = scheduled_at(*row, free_since);
            record.t_slot = now_ns();
            ++in_flight_;
            const std::string head =
                request_head(target_, "POST", endpoint_, requests_[*row].body.size(), requests_[*row].id);
            co_await slot.serve(head, requests_[*row], options_, record);
            --in_flight_;
            note_finished(record);
            free_since = record.t_end;
        }
        idle_.push_back(&slot);
        --running_;
        pump(now_ns());
    }

    std::int64_t scheduled_at(std::size_t row, std::int64_t free_since) const {
        if (row < options_.release_ns.size()) {
            const std::int64_t released = result_.t_begin_ns + options_.release_ns[row];
            return options_.open_loop ? released : std::max(released, free_since);
        }
        return free_since;
    }

    void note_finished(const RequestRecord& record) {
        ++finished_;
        failed_ += record.ok() ? 0 : 1;
        output_tokens_ += record.ok() ? record.output_tokens() : 0;
        const double rate = static_cast<double>(failed_) / static_cast<double>(finished_);
        if (!stopping_ && finished_ >= kRequestsBeforeGivingUp && rate > options_.max_error_rate) {
            result_.gave_up = true;
            stop(now_ns());
        }
    }

    void stop(std::int64_t now) {
        stopping_ = true;
        cancel_at_ns_ = now + kGraceNs;
        releaser_.cancel();
    }

    asio::awaitable<void> release_rows() {
        const std::vector<std::int64_t>& at = options_.release_ns;
        while (released_ < at.size() && !stopping_) {
            const std::int64_t due = result_.t_begin_ns + at[released_];
            if (due > now_ns()) {
                releaser_.expires_at(time_point(due));
                co_await releaser_.async_wait(kNoThrow);
            }
            // A late timer releases everything that is due: the schedule is never moved.
            const std::int64_t now = now_ns();
            while (released_ < at.size() && result_.t_begin_ns + at[released_] <= now) {
                ++released_;
            }
            if (released_ < at.size()) {
                pump(now);
            }
        }
        if (!stopping_) {
            released_ = requests_.size();
        }
        pump(now_ns());
    }

    // A timer of known period: watches limits, Ctrl-C and its own punctuality.
    asio::awaitable<void> tick() {
        for (std::int64_t n = 1; !over(); ++n) {
            const std::int64_t due = now_ns() + kTickNs;
            ticker_.expires_at(time_point(due));
            const auto [error] = co_await ticker_.async_wait(kNoThrow);
            const std::int64_t now = now_ns();
            if (!error) {
                lags_ms_.push_back(static_cast<double>(now - due) / 1e6);
            }
            if (interrupted() && !result_.interrupted) {
                result_.interrupted = true;
                stop(now);
            }
            if (n % kTicksPerSweep == 0) {
                const bool cancel = stopping_ && now > cancel_at_ns_;
                for (StreamSlot& slot : slots_) {
                    slot.sweep(now, cancel);
                }
            }
            if (n % kTicksPerReport == 0 && options_.on_progress) {
                report(now);
            }
        }
    }

    void report(std::int64_t now) const {
        options_.on_progress({.finished = finished_,
                              .failed = failed_,
                              .total = static_cast<std::int64_t>(requests_.size()),
                              .in_flight = in_flight_,
                              .output_tokens = output_tokens_,
                              .elapsed_s = static_cast<double>(now - result_.t_begin_ns) / 1e9});
    }

    void check_self(std::int64_t cpu_begin, const rusage& before) {
        SelfCheck& self = result_.self;
        std::sort(lags_ms_.begin(), lags_ms_.end());
        if (!lags_ms_.empty()) {
            self.loop_lag_p99_ms = lags_ms_[(lags_ms_.size() - 1) * 99 / 100];
            self.loop_lag_max_ms = lags_ms_.back();
        }
        const std::int64_t wall = std::max<std::int64_t>(result_.t_end_ns - result_.t_begin_ns, 1);
        self.cpu_share = static_cast<double>(thread_cpu_ns() - cpu_begin) / static_cast<double>(wall);
        const rusage after = usage_of_thread();
        self.involuntary_switches = after.ru_nivcsw - before.ru_nivcsw;
        self.peak_rss_bytes = std::int64_t{after.ru_maxrss} * 1024;
        for (const RequestRecord& record : result_.records) {
            self.coalesced_events += record.coalesced_events;
            self.events += static_cast<std::int64_t>(record.chunks.size());
        }
        for (StreamSlot& slot : slots_) {
            self.connections += slot.connections();
            self.tcp_retransmits += slot.retransmits();
        }
    }

    asio::io_context& io_;
    std::deque<StreamSlot>& slots_;
    tcp::endpoint peer_;
    const Target& target_;
    const std::string& endpoint_;
    const std::vector<PlannedRequest>& requests_;
    const PassOptions& options_;
    asio::steady_timer ticker_;
    asio::steady_timer releaser_;
    std::vector<StreamSlot*> idle_;
    std::vector<double> lags_ms_;
    PassResult result_;
    std::size_t max_slots_ = 0;
    std::size_t released_ = 0;
    std::size_t next_ = 0;
    std::size_t running_ = 0;  // slots at work
    std::int64_t in_flight_ = 0;
    std::int64_t finished_ = 0;
    std::int64_t failed_ = 0;
    std::int64_t output_tokens_ = 0;
    bool stopping_ = false;
    std::int64_t cancel_at_ns_ = 0;
};

}  // namespace

LoadClient::LoadClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
LoadClient::LoadClient(LoadClient&&) noexcept = default;
LoadClient::~LoadClient() = default;

Result<LoadClient> LoadClient::create(const Target& target, const std::string& endpoint) {
    auto state = std::make_unique<State>();
    state->target = target;
    state->endpoint = endpoint;
    boost::system::error_code error;
    tcp::resolver resolver(state->io);
    const auto found = resolver.resolve(target.host, std::to_string(target.port), error);
    if (error || found.empty()) {
        return Error{Errc::kUnavailable, "host " + target.host + " has no address: " + error.message(),
                     "check --base-url"};
    }
    // "localhost" is often listed as ::1 first, while model servers listen on IPv4.
    state->peer = found.begin()->endpoint();
    for (const auto& entry : found) {
        if (entry.endpoint().address().is_v4()) {
            state->peer = entry.endpoint();
            break;
        }
    }
    return LoadClient(std::move(state));
}

void LoadClient::open_connections(std::int32_t count, std::int64_t timeout_ms) {
    constexpr std::int32_t kAtOnce = 256;  // a burst beyond the server's backlog costs seconds of SYN retransmits
    State& s = *state_;
    while (std::ssize(s.slots) < count) {
        s.slots.emplace_back(s.io, s.peer);
    }
    std::size_t next = 0;
    const auto opener = [&]() -> asio::awaitable<void> {
        while (next < s.slots.size()) {
            StreamSlot& slot = s.slots[next++];
            co_await slot.connect(timeout_ms, nullptr);
        }
    };
    asio::steady_timer sweeper(s.io);
    std::int32_t openers = std::min(kAtOnce, count);
    const auto watch = [&]() -> asio::awaitable<void> {
        while (openers > 0) {
            sweeper.expires_after(std::chrono::milliseconds(100));
            co_await sweeper.async_wait(kNoThrow);
            for (StreamSlot& slot : s.slots) {
                slot.sweep(now_ns(), interrupted());
            }
        }
    };
    for (std::int32_t k = std::min(kAtOnce, count); k > 0; --k) {
        asio::co_spawn(s.io, opener(), [&](std::exception_ptr thrown) {
            if (--openers == 0) {
                sweeper.cancel();
            }
            kRethrow(thrown);
        });
    }
    asio::co_spawn(s.io, watch(), kRethrow);
    s.io.restart();
    s.io.run();
}

PassResult LoadClient::run(const std::vector<PlannedRequest>& requests, const PassOptions& options) {
    State& s = *state_;
    return Pass(s.io, s.slots, s.peer, s.target, s.endpoint, requests, options).run();
}

}  // namespace megamoe::lab
