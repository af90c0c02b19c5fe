// The server's routes over a Backend: who may call what, and what is answered. No sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/api/api_error.h"
#include "frontend/api/info_json.h"
#include "frontend/api/job.h"
#include "frontend/api/metrics.h"
#include "frontend/api/work.h"
#include "frontend/http/exchange.h"
#include "frontend/router/dispatcher.h"

namespace megamoe::api {

struct AppOptions {
    std::string api_key{};  // empty = open
    router::BalanceMethod load_balance_method = router::BalanceMethod::kTotalTokens;
    std::int64_t probe_timeout_ms = 20000;  // of /health_generate
};

// Where work runs. Tasks that were posted must not run once the App is gone.
struct Loops {
    std::function<void(std::function<void()>)> io;  // on the I/O thread; from any thread
    std::function<void(std::int64_t ms, std::function<void()>)> io_after;
    std::function<void(std::function<void()>)> prepare;  // beside it, one after the other
};

// Thread  the I/O thread; constructor and destructor while no loop runs
// Spec    serving spec, 9
class App {
  public:
    App(AppOptions options, router::Backend& backend, WorkContext context, Loops loops);
    ~App();
    App(const App&) = delete;
    App& operator=(const App&) = delete;

    // Answers one request, now or later.
    void handle(http::Request request, std::shared_ptr<http::Exchange> exchange);

    // Takes no new requests; `idle` is called once none is live any more, perhaps at once.
    void drain(std::function<void()> idle);
    // Answers all live requests with 503.
    void abort_all();

  private:
    struct Call {
        http::Request request;
        std::shared_ptr<http::Exchange> exchange;
        std::vector<http::Header> headers;  // of the answer: the request id
        std::int64_t arrival_ns = 0;
    };
    struct Route {
        std::string_view method;
        std::string_view path;  // a last "*" stands for anything
        bool is_open = false;   // needs no key
        void (App::*handler)(Call call) = nullptr;
    };
    static const std::vector<Route>& routes();
    static bool matches(const Route& route, std::string_view path);

    // Routes, in app_routes.cpp.
    void get_models(Call call);
    void get_model(Call call);
    void get_model_info(Call call);
    void get_server_info(Call call);
    void get_load(Call call);
    void get_health(Call call);
    void get_health_generate(Call call);
    void get_liveness(Call call);
    void get_metrics(Call call);
    void flush_cache(Call call);
    void post_abort(Call call);
    void post_tokenize(Call call);
    void post_detokenize(Call call);
    void post_completions(Call call);
    void post_chat_completions(Call call);
    void post_generate(Call call);

    using MakeWork = Parsed<Work> (*)(std::string_view, const WorkContext&, std::uint64_t, std::int64_t);
    void generate(Call call, MakeWork make_work);
    std::shared_ptr<Job> start(Call call, Work work);

    // Runs `make` on the body beside the I/O thread, and `use` with the call and the result back on it.
    template <class T>
    void beside(Call call, std::function<T(const std::string& body)> make, std::function<void(Call call, T made)> use);

    bool may_call(const Route& route, const http::Request& request) const;
    std::optional<ApiError> check_body(const http::Request& request) const;
    // Why no request is taken now.
    std::optional<ApiError> refusal() const;
    ServerStatus status() const;
    void answer(const Call& call, http::Response response);
    void answer(const Call& call, const ApiError& error) { answer(call, to_response(error)); }
    void answer_json(const Call& call, std::string body) { answer(call, http::Response{.body = std::move(body)}); }
    void check_idle();

    AppOptions options_;
    router::Backend& backend_;
    WorkContext context_;
    Loops loops_;
    Metrics metrics_;
    router::Dispatcher dispatcher_;
    Job::Context job_context_;
    std::int64_t start_ns_;
    std::int64_t created_;  // seconds since 1970
    std::uint64_t next_number_ = 1;
    std::unordered_map<std::uint64_t, Call> beside_;  // calls whose body is being worked on
    std::unordered_map<std::string, std::shared_ptr<Job>> jobs_;
    bool draining_ = false;
    std::function<void()> idle_;
};

}  // namespace megamoe::api
