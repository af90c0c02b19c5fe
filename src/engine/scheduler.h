// Which requests of one rank run in the next step, and what becomes of them after it. A state machine without clock,
// thread or I/O: what happened goes in, decisions and updates come out.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/admission.h"
#include "engine/forward_port.h"
#include "engine/live_request.h"
#include "engine/request.h"
#include "kv/pools.h"
#include "model/sampler.h"
#include "step/step_plan.h"

namespace megamoe::engine {

struct SchedulerConfig {
    std::int32_t rank = 0;
    std::int32_t max_running = 1;       // requests that hold cache
    std::int32_t max_prefill_rows = 1;  // of this rank in one step
    std::int32_t eos_id = 0;
    double conservativeness = 1;  // scales how much of its max_tokens a request is expected to use
};

// Requests wait (first come, first served), are prefilled in chunks (at most one is partly prefilled at a time), run,
// and end. When the cache runs out, those with the least output go back to the front of the queue and are prefilled
// again later.
//
// One step is propose(), then prepare() and commit() if the agreed plan lets this rank run; else nothing: the next
// propose() starts anew. No page is taken before prepare(), and lengths change in commit() only.
// Spec  serving spec, 1.5, 2.5, 4, 9.5, 9.6
class Scheduler {
  public:
    Scheduler(const SchedulerConfig& config, kv::Pools& pools);

    // COLLECT, between steps only. `request` passed the engine's checks: its prompt fits an empty cache.
    void add(Request request, std::uint64_t seed);
    void abort(RequestId id);  // unknown ids are ignored

    // PROPOSE: the rows this rank would run now; none only if it has no requests. Retracts when decode would not fit.
    struct Candidate {
        struct Part {
            LiveRequest* request = nullptr;
            std::int32_t num_tokens = 0;
            bool last = false;  // reaches the end of the request's tokens: its next one gets chosen
        };
        step::Phase phase = step::Phase::kIdle;
        std::vector<Part> parts;
        std::int32_t num_tokens = 0;
        std::int32_t num_logit_rows = 0;
    };
    const Candidate& propose();
    void describe(step::StepProposal& proposal) const;  // fills all fields that the scheduler knows

    // PREPARE: takes the pages of the candidate. The segments live until commit().
    std::span<const Segment> prepare();
    // The requests whose logits the forward returns, in row order.
    std::vector<const LiveRequest*> logit_rows() const;

    // COMMIT: the candidate ran. `sampled` by logit row; an error ends its request alone.
    void commit(std::span<const Result<model::Sampled>> sampled);

    // What clients must hear since the last call, in order.
    std::vector<Update> take_updates();
    // Ends every request with kError.
    void fail_all(const Error& error);

    bool idle() const { return waiting_.empty() && running_.empty() && !chunked_; }
    std::int32_t num_running() const;  // partly prefilled ones included
    std::int32_t num_waiting() const { return static_cast<std::int32_t>(waiting_.size()); }
    std::int64_t num_prompt_tokens() const { return num_prompt_tokens_; }  // of requests that got their first token
    std::int64_t num_generated_tokens() const { return num_generated_tokens_; }
    std::int64_t num_retractions() const { return num_retractions_; }
    std::vector<const kv::Sequence*> live_sequences() const;  // for the leak check

  private:
    using Owned = std::unique_ptr<LiveRequest>;

    void propose_extend();
    void propose_decode();
    void add_part(LiveRequest& request, std::int32_t num_tokens);
    bool decode_fits() const;
    void make_room();
    Owned take_worst();
    void settle_extended();
    void take_token(LiveRequest& request, const model::Sampled& sampled);
    void end(const LiveRequest& request, Update update);
    void drop(const LiveRequest* request);

    const SchedulerConfig config_;
    kv::Pools& pools_;
    NewTokenRatio ratio_;
    std::deque<Owned> waiting_;   // hold no cache
    Owned chunked_;               // holds cache, prompt not finished
    std::vector<Owned> running_;  // in decode, in order of admission
    bool decode_owed_ =
        false;  // after a retraction: no extend before one decode step, or two ranks could take turns for ever
    Candidate candidate_;
    std::vector<Segment> segments_;
    std::vector<Update> updates_;
    std::int64_t num_prompt_tokens_ = 0;
    std::int64_t num_generated_tokens_ = 0;
    std::int64_t num_retractions_ = 0;
};

}  // namespace megamoe::engine
