#include "frontend/signal_waiter.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <csignal>

namespace megamoe::frontend {

namespace asio = boost::asio;

struct SignalWaiter::State {
    asio::io_context io;
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
    asio::signal_set signals{io, SIGINT, SIGTERM};
    Wake wake = Wake::kTimeout;

    void arm() {
        signals.async_wait([this](boost::system::error_code cancelled, int) {
            if (!cancelled) {
                wake = Wake::kSignal;
                arm();
            }
        });
    }
};

SignalWaiter::SignalWaiter() : state_(std::make_unique<State>()) {
    state_->arm();
}

SignalWaiter::~SignalWaiter() = default;

SignalWaiter::Wake SignalWaiter::wait(std::int64_t timeout_ms) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    state_->wake = Wake::kTimeout;
    // Arrivals in the signal pipe count as handlers of their own, so one is not yet news.
    while (state_->wake == Wake::kTimeout && state_->io.run_one_until(deadline) > 0) {
    }
    return state_->wake;
}

void SignalWaiter::notify() {
    asio::post(state_->io, [state = state_.get()] { state->wake = Wake::kNotified; });
}

}  // namespace megamoe::frontend
