#include "frontend/api/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace megamoe::api {
namespace {

constexpr std::size_t kMaxRequestIdBytes = 128;

std::int64_t seconds_since_1970() {
    using std::chrono::system_clock;
    return std::chrono::duration_cast<std::chrono::seconds>(system_clock::now().time_since_epoch()).count();
}

// Time depends on the lengths alone.
bool equals_secret(std::string_view given, std::string_view secret) {
    unsigned difference = given.size() == secret.size() ? 0 : 1;
    for (std::size_t i = 0; i < given.size(); ++i) {
        difference |= static_cast<unsigned>(given[i] ^ secret[i % secret.size()]);
    }
    return difference == 0;
}

bool is_usable_request_id(std::string_view id) {
    return !id.empty() && id.size() <= kMaxRequestIdBytes &&
           std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

App::App(AppOptions options, router::Backend& backend, WorkContext context, Loops loops)
    : options_(std::move(options)),
      backend_(backend),
      context_(std::move(context)),
      loops_(std::move(loops)),
      metrics_(context_.model.served_name),
      dispatcher_(backend, options_.load_balance_method, context_.model.num_ranks, loops_.io),
      job_context_{dispatcher_, metrics_, context_.tokenizer,
                   [this](const std::string& id) {
                       jobs_.erase(id);
                       check_idle();
                   }},
      start_ns_(now_ns()),
      created_(seconds_since_1970()) {
    dispatcher_.on_idle([this] { check_idle(); });
}

App::~App() = default;

void App::handle(http::Request request, std::shared_ptr<http::Exchange> exchange) {
    Call call{.request = std::move(request), .exchange = std::move(exchange), .headers = {}, .arrival_ns = now_ns()};
    const std::string_view given = call.request.header("x-request-id");
    call.headers.push_back({"X-Request-Id", is_usable_request_id(given)
                                                ? std::string(given)
                                                : fmt::format("req-{:x}{:08x}", created_, next_number_++)});
    const std::string method = call.request.method == "HEAD" ? "GET" : call.request.method;
    std::string allowed;
    for (const Route& route : routes()) {
        if (!matches(route, call.request.path)) {
            continue;
        }
        if (route.method != method) {
            allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
            continue;
        }
        if (!may_call(route, call.request)) {
            answer(call, ApiError{.status = 401,
                                  .message = "the API key is missing or wrong; send it as 'Authorization: Bearer KEY'",
                                  .code = "invalid_api_key"});
            return;
        }
        if (auto error = check_body(call.request)) {
            answer(call, *error);
            return;
        }
        (this->*route.handler)(std::move(call));
        return;
    }
    if (allowed.empty()) {
        answer(call, ApiError{.status = 404, .message = fmt::format("there is no route {}", call.request.path)});
        return;
    }
    http::Response response{.status = 204, .content_type = ""};
    if (method != "OPTIONS") {
        response = to_response(
            {.status = 405, .message = fmt::format("{} takes {}, not {}", call.request.path, allowed, method)});
    }
    response.headers.push_back({"Allow", allowed + ", OPTIONS"});
    answer(call, std::move(response));
}

bool App::matches(const Route& route, std::string_view path) {
    if (route.path.ends_with('*')) {
        const std::string_view stem = route.path.substr(0, route.path.size() - 1);
        return path.size() > stem.size() && path.starts_with(stem);
    }
    return path == route.path;
}

bool App::may_call(const Route& route, const http::Request& request) const {
    constexpr std::string_view kScheme = "Bearer ";
    if (route.is_open || options_.api_key.empty()) {
        return true;
    }
    std::string_view given = request.header("authorization");
    if (!given.starts_with(kScheme)) {
        return false;
    }
    given.remove_prefix(kScheme.size());
    return equals_secret(given, options_.api_key);
}

std::optional<ApiError> App::check_body(const http::Request& request) const {
    const std::string_view type = request.header("content-type");
    if (request.method != "POST" || request.body.empty() || type.empty() || type.find("json") != type.npos) {
        return std::nullopt;
    }
    return ApiError{.status = 415,
                    .message = fmt::format("the content type is '{}', send 'Content-Type: application/json'", type)};
}

std::optional<ApiError> App::refusal() const {
    if (draining_) {
        return ApiError{.status = 503, .message = "the server is shutting down", .code = "draining"};
    }
    switch (backend_.phase()) {
        case router::Phase::kStarting:
            return ApiError{.status = 503, .message = "the model is still loading", .code = "starting"};
        case router::Phase::kFailed:
            return ApiError{.status = 503, .message = "the engine failed: " + backend_.failure(), .code = "failed"};
        case router::Phase::kReady:
            break;
    }
    return std::nullopt;
}

ServerStatus App::status() const {
    const auto refused = refusal();
    return {.state = refused ? refused->code : "ready",
            .uptime_seconds = static_cast<double>(now_ns() - start_ns_) * 1e-9,
            .load_balance_method = router::to_string(options_.load_balance_method),
            .ranks = backend_.stats(),
            .loads = dispatcher_.rank_router().loads()};
}

void App::answer(const Call& call, http::Response response) {
    metrics_.count_response(response.status);
    response.headers.insert(response.headers.end(), call.headers.begin(), call.headers.end());
    call.exchange->respond(std::move(response));
}

// The exchange stays here while the other thread works, so that it never ends on that thread.
template <class T>
void App::beside(Call call, std::function<T(const std::string& body)> make,
                 std::function<void(Call call, T made)> use) {
    const auto body = std::make_shared<const std::string>(std::move(call.request.body));
    const std::uint64_t key = next_number_++;
    beside_.emplace(key, std::move(call));
    loops_.prepare([this, key, body, make = std::move(make), use = std::move(use)] {
        const auto made = std::make_shared<T>(make(*body));
        loops_.io([this, key, made, use] {
            auto node = beside_.extract(key);
            use(std::move(node.mapped()), std::move(*made));
            check_idle();
        });
    });
}

void App::generate(Call call, MakeWork make_work) {
    if (auto error = refusal()) {
        answer(call, *error);
        return;
    }
    const std::uint64_t number = next_number_++;
    const std::int64_t created = seconds_since_1970();
    beside<Parsed<Work>>(
        std::move(call),
        [this, make_work, number, created](const std::string& body) {
            return make_work(body, context_, number, created);
        },
        [this](Call prepared, Parsed<Work> made) {
            if (const auto* const error = std::get_if<ApiError>(&made)) {
                answer(prepared, *error);
            } else {
                start(std::move(prepared), std::get<Work>(std::move(made)));
            }
        });
}

std::shared_ptr<Job> App::start(Call call, Work work) {
    const std::string id = work.id;
    if (jobs_.contains(id)) {
        answer(call, ApiError{.message = fmt::format("rid '{}' is in use by a live request", id), .param = "rid"});
        return nullptr;
    }
    const auto job = std::make_shared<Job>(job_context_, std::move(work), std::move(call.exchange),
                                           std::move(call.headers), call.arrival_ns);
    jobs_.emplace(id, job);
    job->start();
    return job;
}

void App::post_tokenize(Call call) {
    beside<http::Response>(
        std::move(call), [this](const std::string& body) { return tokenize_response(body, context_); },
        [this](Call prepared, http::Response response) { answer(prepared, std::move(response)); });
}

void App::post_detokenize(Call call) {
    beside<http::Response>(
        std::move(call), [this](const std::string& body) { return detokenize_response(body, context_); },
        [this](Call prepared, http::Response response) { answer(prepared, std::move(response)); });
}

void App::drain(std::function<void()> idle) {
    draining_ = true;
    idle_ = std::move(idle);
    check_idle();
}

void App::abort_all() {
    const auto jobs = jobs_;  // they leave jobs_ as they end
    for (const auto& [id, job] : jobs) {
        job->fail({.status = 503, .message = "the server is shutting down", .code = "draining"});
    }
}

void App::check_idle() {
    if (draining_ && idle_ && beside_.empty() && jobs_.empty() && dispatcher_.num_live() == 0) {
        std::exchange(idle_, nullptr)();
    }
}

}  // namespace megamoe::api
