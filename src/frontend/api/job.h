// One client request in work: its engine requests, the texts they become, and the answer to the client.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/api/api_error.h"
#include "frontend/api/choice.h"
#include "frontend/api/metrics.h"
#include "frontend/api/work.h"
#include "frontend/http/exchange.h"
#include "frontend/router/dispatcher.h"

namespace megamoe::api {

// Ends exactly once: with a whole answer, an error, or a client that left; then it hears no more of its engine
// requests. A slow client gets fewer, larger events: what is new waits in the choices, bounded by their tokens.
// Thread  the I/O thread
class Job final : public router::UpdateListener, public std::enable_shared_from_this<Job> {
  public:
    struct Context {  // outlives all jobs
        router::Dispatcher& dispatcher;
        Metrics& metrics;
        std::shared_ptr<const text::Tokenizer> tokenizer;
        std::function<void(const std::string& id)> ended;
    };

    // In  headers  for the answer's head
    Job(Context& context, Work work, std::shared_ptr<http::Exchange> exchange, std::vector<http::Header> headers,
        std::int64_t arrival_ns);

    // Submits; a refusal of the engine becomes the answer.
    void start();
    // Asks the engine to end the request; what was generated is answered, with finish_reason "abort".
    void abort();
    // Answers with an error, in the stream if it has begun, and drops the rest.
    void fail(const ApiError& error);

    void on_update(std::int32_t tag, engine::Update update) override;

  private:
    struct Run {  // one choice
        RequestId id{};
        std::size_t item = 0;
        Choice choice;
        bool end_is_shown = false;
        std::int64_t last_token_ns = 0;  // 0: none yet
    };

    void submit_all();
    void measure_token(Run& run);
    void show(Run& run);
    void begin_stream();
    void complete();
    void end(engine::FinishReason unfinished);
    void on_disconnect();
    ChoiceView view(Run& run);
    Usage usage(const Run& run) const;
    Usage total_usage() const;

    Context& context_;
    Work work_;
    std::shared_ptr<http::Exchange> exchange_;
    std::vector<http::Header> headers_;
    std::int64_t arrival_ns_;
    std::vector<Run> runs_;
    std::size_t num_running_ = 0;
    bool streams_ = false;  // the head is sent
    bool ended_ = false;
};

}  // namespace megamoe::api
