#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace megamoe::engine {
namespace {

// Least output first; of equals the one with more prompt, then the younger one: it comes later in `requests`.
bool is_worse(const LiveRequest& a, const LiveRequest& b) {
    return std::pair(a.num_generated(), -a.num_prompt) <= std::pair(b.num_generated(), -b.num_prompt);
}

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config, kv::Pools& pools)
    : config_(config), pools_(pools), ratio_(config.conservativeness) {
    MM_CHECK(config.max_running >= 1 && config.max_prefill_rows >= 1, config.max_running, config.max_prefill_rows);
}

void Scheduler::add(Request request, std::uint64_t seed) {
    auto live = std::make_unique<LiveRequest>();
    live->id = request.id;
    live->sampling = std::move(request.sampling);
    live->seed = seed;
    live->tokens = std::move(request.prompt);
    live->num_prompt = live->num_tokens();
    waiting_.push_back(std::move(live));
}

void Scheduler::abort(RequestId id) {
    const auto is_it = [id](const Owned& owned) { return owned && owned->id == id; };
    const LiveRequest* found = is_it(chunked_) ? chunked_.get() : nullptr;
    for (const Owned& owned : waiting_) {
        found = is_it(owned) ? owned.get() : found;
    }
    for (const Owned& owned : running_) {
        found = is_it(owned) ? owned.get() : found;
    }
    if (found != nullptr) {
        end(*found, Update{.finish = FinishReason::kAbort});
    }
}

const Scheduler::Candidate& Scheduler::propose() {
    candidate_ = {};
    if (idle()) {
        ratio_.on_idle();
    }
    // Making room for decode may end a request that stands alone; then it is the next one's turn.
    while (candidate_.parts.empty() && !idle()) {
        if (running_.empty() || !decode_owed_) {
            propose_extend();
        }
        if (candidate_.parts.empty() && !running_.empty()) {
            propose_decode();
        }
    }
    return candidate_;
}

void Scheduler::propose_extend() {
    candidate_.phase = step::Phase::kExtend;
    ExtendBudget budget(pools_, ratio_.value(), config_.max_prefill_rows);
    for (const Owned& request : running_) {
        budget.reserve_running(*request);
    }
    std::int32_t num_holding = num_running();
    if (chunked_) {
        const std::int32_t rows = budget.grant_chunk(*chunked_);
        if (rows > 0) {
            add_part(*chunked_, rows);
        }
        if (rows < chunked_->num_pending()) {
            return;  // one partly prefilled request at a time
        }
    }
    for (const Owned& request : waiting_) {
        if (num_holding == config_.max_running || budget.rows_left() == 0) {
            return;
        }
        const std::int32_t rows = budget.grant_new(*request, /*alone=*/num_holding == 0);
        if (rows == 0) {
            return;
        }
        add_part(*request, rows);
        ++num_holding;
        if (rows < request->num_pending()) {
            return;
        }
    }
}

void Scheduler::propose_decode() {
    make_room();
    candidate_.phase = step::Phase::kDecode;
    for (const Owned& request : running_) {
        add_part(*request, 1);
    }
}

void Scheduler::add_part(LiveRequest& request, std::int32_t num_tokens) {
    const bool last = num_tokens == request.num_pending();
    candidate_.parts.push_back({.request = &request, .num_tokens = num_tokens, .last = last});
    candidate_.num_tokens += num_tokens;
    candidate_.num_logit_rows += last ? 1 : 0;
}

bool Scheduler::decode_fits() const {
    kv::PageNeed sum;
    for (const Owned& request : running_) {
        const kv::PageNeed need = request->sequence->need(request->num_tokens());
        sum.token += need.token;
        sum.window += need.window;
    }
    return sum.token <= pools_.token_pages().num_free() && sum.window <= pools_.window_pages().num_free();
}

void Scheduler::make_room() {
    bool retracted = false;
    while (!decode_fits()) {
        if (num_running() == 1) {
            const LiveRequest& last = *running_.front();
            end(last, Update{.finish = FinishReason::kError,
                             .error = {Errc::kResourceExhausted,
                                       fmt::format("the cache of rank {} is full with this request alone, at {} tokens",
                                                   config_.rank, last.num_tokens()),
                                       "ask for fewer tokens, or start the server with more cache"}});
            return;
        }
        waiting_.push_front(take_worst());
        waiting_.front()->sequence.reset();
        ++num_retractions_;
        retracted = true;
    }
    if (retracted && !running_.empty()) {
        decode_owed_ = true;
        std::int64_t generated = 0;
        std::int64_t max_tokens = 0;
        for (const Owned& request : running_) {
            generated += request->num_generated();
            max_tokens += request->sampling.max_tokens;
        }
        ratio_.on_retraction(std::ssize(running_), generated, max_tokens);
    }
}

Scheduler::Owned Scheduler::take_worst() {
    auto worst = running_.begin();
    for (auto it = running_.begin(); it != running_.end(); ++it) {
        worst = is_worse(**it, **worst) ? it : worst;
    }
    if (chunked_ && is_worse(*chunked_, **worst)) {
        return std::move(chunked_);
    }
    Owned taken = std::move(*worst);
    running_.erase(worst);
    return taken;
}

void Scheduler::describe(step::StepProposal& proposal) const {
    proposal.phase = static_cast<std::int64_t>(candidate_.parts.empty() ? step::Phase::kIdle : candidate_.phase);
    proposal.n_tokens = candidate_.num_tokens;
    proposal.n_logit_rows = candidate_.num_logit_rows;
    proposal.prefillable = chunked_ || !waiting_.empty() ? 1 : 0;
    proposal.running_reqs = num_running();
    proposal.waiting_reqs = num_waiting();
    proposal.max_running_reqs = config_.max_running;
    proposal.kv_low = pools_.token_pages().num_free() * 10 < pools_.token_pages().usable() ? 1 : 0;
    proposal.pending_prefill_tokens = chunked_ ? chunked_->num_pending() : 0;
    for (const Owned& request : waiting_) {
        proposal.pending_prefill_tokens += request->num_pending();
    }
    if (chunked_) {
        proposal.set(step::StepProposal::kHasPartialChunk);
    }
    if (!idle()) {
        proposal.set(step::StepProposal::kAnyUnfinished);
    }
}

std::span<const Segment> Scheduler::prepare() {
    segments_.clear();
    for (const Candidate::Part& part : candidate_.parts) {
        LiveRequest& request = *part.request;
        if (!request.sequence) {
            request.sequence = kv::Sequence::open(pools_);
        }
        const std::int32_t start = request.num_committed();
        // The candidate was built to fit, and nothing has taken a page since.
        MM_CHECK(request.sequence && request.sequence->reserve(start + part.num_tokens), "no room for",
                 part.num_tokens);
        segments_.push_back(
            {.seq = &*request.sequence,
             .tokens = std::span<const std::int32_t>(request.tokens)
                           .subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(part.num_tokens)),
             .start = start,
             .want_logits = part.last});
    }
    return segments_;
}

std::vector<const LiveRequest*> Scheduler::logit_rows() const {
    std::vector<const LiveRequest*> rows;
    for (const Candidate::Part& part : candidate_.parts) {
        if (part.last) {
            rows.push_back(part.request);
        }
    }
    return rows;
}

void Scheduler::commit(std::span<const Result<model::Sampled>> sampled) {
    MM_CHECK(std::ssize(sampled) == candidate_.num_logit_rows, sampled.size(), candidate_.num_logit_rows);
    segments_.clear();
    for (const Candidate::Part& part : candidate_.parts) {
        part.request->sequence->commit(part.request->num_committed() + part.num_tokens);
    }
    if (candidate_.phase == step::Phase::kExtend) {
        settle_extended();
    } else if (!std::exchange(decode_owed_, false)) {
        ratio_.on_decode_step();
    }
    std::size_t row = 0;
    for (const Candidate::Part& part : candidate_.parts) {
        if (!part.last) {
            continue;
        }
        if (const Result<model::Sampled>& result = sampled[row++]; result) {
            take_token(*part.request, result.value());
        } else {
            end(*part.request, Update{.finish = FinishReason::kError, .error = result.error()});
        }
    }
    candidate_ = {};
}

// Every part but a continued chunk came from the front of the queue, in order.
void Scheduler::settle_extended() {
    for (const Candidate::Part& part : candidate_.parts) {
        Owned owned;
        if (part.request == chunked_.get()) {
            owned = std::move(chunked_);
        } else {
            owned = std::move(waiting_.front());
            waiting_.pop_front();
        }
        MM_CHECK(owned.get() == part.request, "candidate and queue differ");
        if (part.last) {
            running_.push_back(std::move(owned));
        } else {
            chunked_ = std::move(owned);
        }
    }
}

void Scheduler::take_token(LiveRequest& request, const model::Sampled& sampled) {
    const SamplingParams& params = request.sampling;
    num_prompt_tokens_ += request.num_generated() == 0 ? request.num_prompt : 0;
    ++num_generated_tokens_;
    request.tokens.push_back(sampled.token);
    ++request.output_counts[sampled.token];

    Update update{.token = sampled.token};
    if (params.num_logprobs >= 0) {
        update.logprob = {.token = sampled.token, .logprob = sampled.logprob};
        update.top_logprobs = sampled.top;
    }
    const auto& stops = params.stop_token_ids;
    const bool is_eos = sampled.token == config_.eos_id && !params.ignore_eos;
    if (is_eos || std::find(stops.begin(), stops.end(), sampled.token) != stops.end()) {
        update.finish = FinishReason::kStop;
        update.stop_token = sampled.token;
    } else if (request.num_left() == 0) {
        update.finish = FinishReason::kLength;
    }
    end(request, std::move(update));
}

// Reports, and forgets the request if this was its last update.
void Scheduler::end(const LiveRequest& request, Update update) {
    update.id = request.id;
    update.rank = config_.rank;
    const bool last = update.finish != FinishReason::kNone;
    updates_.push_back(std::move(update));
    if (last) {
        drop(&request);
    }
}

void Scheduler::drop(const LiveRequest* request) {
    const auto is_it = [request](const Owned& owned) { return owned.get() == request; };
    if (is_it(chunked_)) {
        chunked_.reset();
    } else if (std::erase_if(running_, is_it) == 0) {
        std::erase_if(waiting_, is_it);
    }
}

std::vector<Update> Scheduler::take_updates() {
    return std::exchange(updates_, {});
}

void Scheduler::fail_all(const Error& error) {
    const auto fail = [&](const Owned& owned) {
        updates_.push_back({.id = owned->id, .finish = FinishReason::kError, .rank = config_.rank, .error = error});
    };
    std::for_each(running_.begin(), running_.end(), fail);
    if (chunked_) {
        fail(chunked_);
    }
    std::for_each(waiting_.begin(), waiting_.end(), fail);
    candidate_ = {};
    segments_.clear();
    running_.clear();
    chunked_.reset();
    waiting_.clear();
}

std::int32_t Scheduler::num_running() const {
    return static_cast<std::int32_t>(running_.size()) + (chunked_ ? 1 : 0);
}

std::vector<const kv::Sequence*> Scheduler::live_sequences() const {
    std::vector<const kv::Sequence*> sequences;
    const auto add = [&](const Owned& owned) {
        if (owned && owned->sequence) {
            sequences.push_back(&*owned->sequence);
        }
    };
    std::for_each(running_.begin(), running_.end(), add);
    std::for_each(waiting_.begin(), waiting_.end(), add);
    add(chunked_);
    return sequences;
}

}  // namespace megamoe::engine
