#include "frontend/api/job.h"

#include <utility>

#include "base/clock.h"
#include "frontend/http/sse.h"

namespace megamoe::api {
namespace {

using engine::FinishReason;

double seconds_between(std::int64_t from_ns, std::int64_t to_ns) {
    return static_cast<double>(to_ns - from_ns) * 1e-9;
}

// The seed of choice `i` of one request: the first is as if it were alone.
std::uint64_t choice_seed(std::uint64_t seed, std::int32_t i) {
    if (i == 0) {
        return seed;
    }
    std::uint64_t x = seed + static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15U;  // splitmix64
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
}

}  // namespace

Job::Job(Context& context, Work work, std::shared_ptr<http::Exchange> exchange, std::vector<http::Header> headers,
         std::int64_t arrival_ns)
    : context_(context),
      work_(std::move(work)),
      exchange_(std::move(exchange)),
      headers_(std::move(headers)),
      arrival_ns_(arrival_ns) {
    for (std::size_t item = 0; item < work_.items.size(); ++item) {
        for (std::int32_t i = 0; i < work_.options.n; ++i) {
            runs_.push_back({.item = item, .choice = Choice(context_.tokenizer, work_.options, work_.is_thinking)});
        }
    }
    num_running_ = runs_.size();
}

void Job::start() {
    exchange_->on_disconnect([weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
            self->on_disconnect();
        }
    });
    exchange_->on_drained([weak = weak_from_this()] {
        if (const auto self = weak.lock(); self && !self->ended_) {
            for (Run& run : self->runs_) {
                self->show(run);
            }
        }
    });
    if (!ended_) {
        submit_all();
    }
}

void Job::submit_all() {
    const std::int32_t n = work_.options.n;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
        WorkItem& item = work_.items[runs_[i].item];
        const auto copy = static_cast<std::int32_t>(i) % n;
        engine::Request request{.prompt = item.prompt, .sampling = work_.options.sampling, .routed_rank = item.rank};
        request.sampling.max_tokens = item.max_tokens;
        if (request.sampling.seed) {
            request.sampling.seed = choice_seed(*request.sampling.seed, copy);
        }
        const auto id =
            context_.dispatcher.submit(std::move(request), shared_from_this(), static_cast<std::int32_t>(i));
        if (!id) {
            fail(to_api_error(id.error()));
            return;
        }
        runs_[i].id = id.value();
    }
}

void Job::on_update(std::int32_t tag, engine::Update update) {
    if (ended_) {
        return;
    }
    if (update.finish == FinishReason::kError) {
        fail(to_api_error(update.error));
        return;
    }
    Run& run = runs_[static_cast<std::size_t>(tag)];
    run.choice.push(update);
    if (update.token >= 0) {
        measure_token(run);
    }
    if (run.choice.finish() != FinishReason::kNone) {
        --num_running_;
        context_.dispatcher.cancel(run.id);  // the engine goes on after a stop string, which it does not know
    }
    if (work_.options.stream && !exchange_->is_slow()) {
        show(run);
    }
    if (num_running_ == 0) {
        complete();
    }
}

void Job::measure_token(Run& run) {
    if (work_.is_probe) {
        return;
    }
    const std::int64_t now = now_ns();
    if (run.last_token_ns == 0) {
        context_.metrics.observe_first_token(seconds_between(arrival_ns_, now));
    } else {
        context_.metrics.observe_tokens(seconds_between(run.last_token_ns, now), 1);
    }
    run.last_token_ns = now;
}

void Job::begin_stream() {
    if (!std::exchange(streams_, true)) {
        exchange_->begin({.content_type = std::string(http::kEventStream), .headers = headers_});
    }
}

void Job::show(Run& run) {
    const bool shows_end = run.choice.finish() != FinishReason::kNone && !run.end_is_shown;
    if (!run.choice.has_news() && !shows_end) {
        return;
    }
    begin_stream();
    std::string events;
    work_.presenter->add_events(view(run), events);
    run.end_is_shown = run.choice.finish() != FinishReason::kNone;
    exchange_->send(events);
}

void Job::complete() {
    if (work_.options.stream) {
        for (Run& run : runs_) {
            show(run);
        }
        std::string tail;
        work_.presenter->add_tail(total_usage(), tail);
        tail += http::kSseDone;
        exchange_->send(tail);
        exchange_->finish();
    } else {
        std::vector<ChoiceView> views;
        for (Run& run : runs_) {
            views.push_back(view(run));
        }
        exchange_->respond({.body = work_.presenter->whole(views, total_usage()), .headers = headers_});
    }
    context_.metrics.count_response(200);
    end(FinishReason::kNone);
}

void Job::fail(const ApiError& error) {
    if (ended_) {
        return;
    }
    context_.metrics.count_response(error.status);
    if (streams_) {
        exchange_->send(http::sse_event(to_json(error)) + std::string(http::kSseDone));
        exchange_->finish();
    } else {
        http::Response response = to_response(error);
        response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
        exchange_->respond(std::move(response));
    }
    end(FinishReason::kError);
}

void Job::abort() {
    for (const Run& run : runs_) {
        context_.dispatcher.abort(run.id);
    }
}

void Job::on_disconnect() {
    if (!ended_) {
        end(FinishReason::kAbort);
    }
}

void Job::end(FinishReason unfinished) {
    ended_ = true;
    const std::int64_t now = now_ns();
    for (Run& run : runs_) {
        const FinishReason reason = run.choice.finish();
        if (!work_.is_probe) {
            context_.metrics.observe_end(seconds_between(arrival_ns_, now),
                                         reason == FinishReason::kNone ? unfinished : reason);
        }
        context_.dispatcher.cancel(run.id);
    }
    context_.ended(work_.id);
}

ChoiceView Job::view(Run& run) {
    return {.index = static_cast<std::int32_t>(&run - runs_.data()),
            .delta = run.choice.take(),
            .finish = run.choice.finish(),
            .matched = run.choice.matched(),
            .usage = usage(run),
            .elapsed_seconds = seconds_between(arrival_ns_, now_ns())};
}

Usage Job::usage(const Run& run) const {
    return {static_cast<std::int64_t>(work_.items[run.item].prompt.size()), run.choice.completion_tokens(),
            run.choice.reasoning_tokens()};
}

Usage Job::total_usage() const {
    Usage total;
    for (const WorkItem& item : work_.items) {
        total.prompt_tokens += static_cast<std::int64_t>(item.prompt.size());
    }
    for (const Run& run : runs_) {
        total.completion_tokens += run.choice.completion_tokens();
        total.reasoning_tokens += run.choice.reasoning_tokens();
    }
    return total;
}

}  // namespace megamoe::api
