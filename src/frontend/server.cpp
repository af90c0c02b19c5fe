#include "frontend/server.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "frontend/api/app.h"
#include "frontend/http/http_server.h"
#include "frontend/serial_worker.h"
#include "frontend/signal_waiter.h"

namespace megamoe::frontend {
namespace {

constexpr std::int64_t kFailurePollMs = 500;
constexpr std::int64_t kLetGoMs = 5000;  // for the engine to end what was aborted
constexpr std::int64_t kFlushMs = 2000;  // for clients to take their last bytes

Result<Done> check(const ServerOptions& options, const ModelInfo& model) {
    const bool fits = options.max_connections >= 1 && options.max_body_bytes >= 1 && options.drain_timeout_ms >= 0;
    if (!fits) {
        return invalid(
            fmt::format("server limits are out of range: max_connections {}, max_body_bytes {}, "
                        "drain_timeout_ms {}",
                        options.max_connections, options.max_body_bytes, options.drain_timeout_ms));
    }
    if (model.context_length < 1 || model.vocab_size < 1 || model.num_ranks < 1) {
        return invalid(fmt::format("model sizes are out of range: context_length {}, vocab_size {}, num_ranks {}",
                                   model.context_length, model.vocab_size, model.num_ranks));
    }
    return Done{};
}

}  // namespace

// Members go from the last on: the worker, which posts; the app, whose requests hold exchanges; the server of these.
struct Server::State {
    State(const ServerOptions& given, router::Backend& engine) : options(given), backend(engine) {}

    api::Loops loops() {
        return {
            .io = [this](std::function<void()> task) { http->post(std::move(task)); },
            .io_after = [this](std::int64_t ms, std::function<void()> task) { http->post_after(ms, std::move(task)); },
            .prepare = [this](std::function<void()> task) { worker->post(std::move(task)); }};
    }

    void begin_drain(std::function<void()> notify) {
        http->post([this, notify = std::move(notify)] {
            app->drain([this, notify] {
                const std::lock_guard lock(mutex);
                is_idle = true;
                idle.notify_all();
                if (notify) {
                    notify();
                }
            });
        });
    }

    bool wait_idle(std::int64_t ms) {
        std::unique_lock lock(mutex);
        return idle.wait_for(lock, std::chrono::milliseconds(ms), [this] { return is_idle; });
    }

    ServerOptions options;
    router::Backend& backend;
    std::mutex mutex;
    std::condition_variable idle;
    bool is_idle = false;
    std::once_flag stopped;
    std::unique_ptr<http::HttpServer> http;
    std::unique_ptr<api::App> app;
    std::unique_ptr<SerialWorker> worker;
};

Result<std::unique_ptr<Server>> Server::start(const ServerOptions& options, router::Backend& backend,
                                              std::shared_ptr<const text::Tokenizer> tokenizer, ModelInfo model) {
    MM_TRY_DONE(check(options, model));
    auto state = std::make_unique<State>(options, backend);
    MM_TRY(state->http, http::HttpServer::listen({.host = options.host,
                                                  .port = options.port,
                                                  .max_connections = options.max_connections,
                                                  .max_body_bytes = options.max_body_bytes}));
    state->worker = std::make_unique<SerialWorker>();
    state->app = std::make_unique<api::App>(
        api::AppOptions{.api_key = options.api_key, .load_balance_method = options.load_balance_method}, backend,
        api::WorkContext{std::move(tokenizer), std::move(model)}, state->loops());
    state->http->serve([app = state->app.get()](http::Request request, std::shared_ptr<http::Exchange> exchange) {
        app->handle(std::move(request), std::move(exchange));
    });
    return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() {
    stop();
}

int Server::port() const {
    return state_->http->port();
}

Result<Done> Server::run_until_signal() {
    using Wake = SignalWaiter::Wake;
    SignalWaiter signals;
    while (signals.wait(kFailurePollMs) != Wake::kSignal) {
        if (state_->backend.phase() == router::Phase::kFailed) {
            stop();
            return Error{Errc::kUnavailable, "the engine failed: " + state_->backend.failure(),
                         "see the log lines of the rank it names"};
        }
    }
    log::info(fmt::format("event=draining timeout_ms={} next=\"a second signal aborts at once\"",
                          state_->options.drain_timeout_ms));
    state_->begin_drain([&signals] { signals.notify(); });
    const Wake wake = signals.wait(state_->options.drain_timeout_ms);
    if (wake != Wake::kNotified) {
        log::warn(fmt::format("event=drain_cut reason={}", wake == Wake::kSignal ? "signal" : "timeout"));
    }
    stop();
    log::info("event=stopped");
    return Done{};
}

void Server::stop(std::int64_t drain_ms) {
    std::call_once(state_->stopped, [this, drain_ms] {
        state_->begin_drain(nullptr);
        if (!state_->wait_idle(drain_ms)) {
            state_->http->post([app = state_->app.get()] { app->abort_all(); });
            if (!state_->wait_idle(kLetGoMs)) {
                log::warn(fmt::format("event=requests_left reason=\"the engine did not end them in {} ms\"", kLetGoMs));
            }
        }
        state_->http->shutdown(kFlushMs);
        state_->worker.reset();
    });
}

}  // namespace megamoe::frontend
