// The routes, one short function each.
#include <fmt/format.h>

#include <charconv>
#include <numeric>
#include <utility>

#include "frontend/api/app.h"
#include "frontend/api/parse.h"

namespace megamoe::api {

const std::vector<App::Route>& App::routes() {
    constexpr bool kOpen = true;
    static const std::vector<Route> kRoutes{
        {"POST", "/v1/completions", false, &App::post_completions},
        {"POST", "/v1/chat/completions", false, &App::post_chat_completions},
        {"POST", "/generate", false, &App::post_generate},
        {"GET", "/v1/models", false, &App::get_models},
        {"GET", "/v1/models/*", false, &App::get_model},
        {"GET", "/health", kOpen, &App::get_health},
        {"GET", "/health_generate", kOpen, &App::get_health_generate},
        {"GET", "/liveness", kOpen, &App::get_liveness},
        {"GET", "/metrics", kOpen, &App::get_metrics},
        {"GET", "/model_info", false, &App::get_model_info},
        {"GET", "/get_model_info", false, &App::get_model_info},
        {"GET", "/server_info", false, &App::get_server_info},
        {"GET", "/get_server_info", false, &App::get_server_info},
        {"GET", "/get_load", false, &App::get_load},
        {"GET", "/v1/loads", false, &App::get_load},
        {"GET", "/flush_cache", false, &App::flush_cache},
        {"POST", "/flush_cache", false, &App::flush_cache},
        {"POST", "/abort_request", false, &App::post_abort},
        {"POST", "/tokenize", false, &App::post_tokenize},
        {"POST", "/detokenize", false, &App::post_detokenize},
    };
    return kRoutes;
}

void App::post_completions(Call call) {
    generate(std::move(call), &make_completion_work);
}

void App::post_chat_completions(Call call) {
    generate(std::move(call), &make_chat_work);
}

void App::post_generate(Call call) {
    generate(std::move(call), &make_generate_work);
}

void App::get_models(Call call) {
    answer_json(call, model_list_json(context_.model, created_));
}

void App::get_model(Call call) {
    const std::string name = call.request.path.substr(std::string_view("/v1/models/").size());
    if (auto error = check_model(name, context_.model)) {
        answer(call, *error);
    } else {
        answer_json(call, model_json(context_.model, created_));
    }
}

void App::get_model_info(Call call) {
    answer_json(call, model_info_json(context_.model));
}

void App::get_server_info(Call call) {
    answer_json(call, server_info_json(context_.model, status()));
}

void App::get_load(Call call) {
    answer_json(call, load_json(status()));
}

void App::get_liveness(Call call) {
    answer_json(call, text_json("status", "alive"));
}

void App::get_health(Call call) {
    if (auto error = refusal()) {
        answer(call, *error);
    } else {
        answer_json(call, text_json("status", "ready"));
    }
}

// One token on the rank in question, or on each of them. Only this probe's own answer counts.
void App::get_health_generate(Call call) {
    if (auto error = refusal()) {
        answer(call, *error);
        return;
    }
    std::vector<std::int32_t> ranks(static_cast<std::size_t>(context_.model.num_ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    if (const auto text = call.request.query_value("dp_rank")) {
        std::int32_t rank = -1;
        const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), rank);
        if (error != std::errc() || end != text->data() + text->size() || rank < 0 ||
            rank >= context_.model.num_ranks) {
            answer(call, ApiError{.message = fmt::format("dp_rank is '{}', must be in [0, {}]", *text,
                                                         context_.model.num_ranks - 1),
                                  .param = "dp_rank"});
            return;
        }
        ranks = {rank};
    }
    const auto job = start(std::move(call), make_probe_work(ranks, context_, next_number_++));
    loops_.io_after(options_.probe_timeout_ms, [probe = std::weak_ptr(job), ms = options_.probe_timeout_ms] {
        if (const auto late = probe.lock()) {
            late->fail({.status = 503, .message = fmt::format("no answer from the probed ranks within {} ms", ms)});
        }
    });
}

void App::get_metrics(Call call) {
    ServerStatus now = status();
    answer(call, {.content_type = "text/plain; version=0.0.4; charset=utf-8",
                  .body = metrics_.render(
                      {.ready = now.state == "ready", .ranks = std::move(now.ranks), .loads = std::move(now.loads)})});
}

// There is no prefix cache, so nothing is kept between requests once all have ended.
void App::flush_cache(Call call) {
    if (dispatcher_.num_live() == 0) {
        answer_json(call, text_json("message", "nothing is cached"));
        return;
    }
    std::int32_t running = 0;
    std::int32_t waiting = 0;
    for (const engine::RankStats& rank : backend_.stats()) {
        running += rank.running;
        waiting += rank.waiting;
    }
    answer(call, ApiError{.message = fmt::format("the cache is in use: {} live requests, {} running and {} waiting",
                                                 dispatcher_.num_live(), running, waiting)});
}

void App::post_abort(Call call) {
    const auto parsed = parse_abort(call.request.body);
    if (const auto* const error = std::get_if<ApiError>(&parsed)) {
        answer(call, *error);
        return;
    }
    const auto& request = std::get<AbortRequest>(parsed);
    std::int64_t num_aborted = 0;
    for (const auto& [id, job] : jobs_) {
        if (request.all || id == request.rid) {
            job->abort();
            ++num_aborted;
        }
    }
    answer_json(call, number_json("aborted", num_aborted));
}

}  // namespace megamoe::api
