#include "engine/rank.h"

#include <array>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace megamoe::engine {
namespace {

constexpr std::array<std::int32_t, 1> kDummyToken{0};

}  // namespace

Result<Done> run_rank(const comm::RankContext& context, Rank& rank, const step::StepPolicy& policy) {
    for (;;) {
        log::set_step(rank.step_no());
        const step::StepProposal mine = rank.propose(context.group.wake_wave());
        MM_TRY(const step::StepPlan plan, exchange(context, mine, policy));
        if (plan.shutdown) {
            return Done{};
        }
        if (plan.pause) {
            MM_TRY_DONE(context.group.wait_wake(plan.wake_wave));
        } else if (!plan.skipped()) {
            MM_TRY_DONE(rank.run(plan));
        }
    }
}

Rank::Rank(const RankConfig& config, kv::Pools& pools, ForwardPort& port, Mailbox& mailbox)
    : config_(config),
      pools_(pools),
      port_(port),
      mailbox_(mailbox),
      scheduler_(config.scheduler, pools),
      logits_(static_cast<std::size_t>(config.scheduler.max_running) * static_cast<std::size_t>(config.vocab_size)),
      dummy_(kv::Sequence::dummy(pools)),
      dummy_segment_{.seq = &dummy_, .tokens = kDummyToken, .start = 0, .want_logits = false} {}

step::StepProposal Rank::propose(std::uint32_t wake_wave) {
    // COLLECT
    collect();

    // PROPOSE
    scheduler_.propose();
    step::StepProposal proposal;
    proposal.step_no = step_no_;
    scheduler_.describe(proposal);
    proposal.set_wake_wave(wake_wave);
    if (stop_) {
        proposal.set(step::StepProposal::kShutdownVote);
    }
    report();
    return proposal;
}

void Rank::collect() {
    for (Command& command : mailbox_.take()) {
        if (auto* arrival = std::get_if<Arrival>(&command)) {
            sinks_.emplace(raw(arrival->request.id), std::move(arrival->sink));
            scheduler_.add(std::move(arrival->request), arrival->seed);
        } else if (const auto* abort = std::get_if<Abort>(&command)) {
            scheduler_.abort(abort->id);
        } else {
            stop_ = true;
        }
    }
}

// AGREE
Result<step::StepPlan> exchange(const comm::RankContext& context, const step::StepProposal& mine,
                                const step::StepPolicy& policy) {
    using Words = std::array<std::int64_t, step::kProposalWords>;
    const auto words = std::bit_cast<Words>(mine);
    const auto num_ranks = static_cast<std::size_t>(context.size);
    std::array<std::int64_t, comm::kMaxRanks * step::kProposalWords> all{};
    MM_TRY_DONE(context.all_gather("engine.propose", words, std::span(all).first(num_ranks * step::kProposalWords)));
    std::array<step::StepProposal, comm::kMaxRanks> proposals;
    for (std::size_t r = 0; r < num_ranks; ++r) {
        Words theirs;
        std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(r * step::kProposalWords), step::kProposalWords,
                    theirs.begin());
        proposals[r] = std::bit_cast<step::StepProposal>(theirs);
    }
    return step::agree(std::span(proposals).first(num_ranks), policy);
}

Result<Done> Rank::run(const step::StepPlan& plan) {
    const auto me = static_cast<std::size_t>(config_.scheduler.rank);
    MM_CHECK(plan.step_no == step_no_, "plan of step", plan.step_no, "on a rank at", step_no_);

    // PREPARE
    const bool runs = plan.who_runs[me];
    const std::span<const Segment> segments = runs ? scheduler_.prepare() : std::span(&dummy_segment_, 1);

    // EXECUTE
    const std::span<float> logits = std::span(logits_).first(static_cast<std::size_t>(plan.logit[me]) *
                                                             static_cast<std::size_t>(config_.vocab_size));
    MM_TRY_DONE(port_.forward(segments, plan, logits));

    // COMMIT
    if (runs) {
        scheduler_.commit(sample(logits));
    }
    ++step_no_;
    ++(!runs ? stats_.idle_steps : plan.phase == step::Phase::kExtend ? stats_.extend_steps : stats_.decode_steps);
    report();
    return Done{};
}

std::vector<Result<model::Sampled>> Rank::sample(std::span<const float> logits) {
    std::vector<Result<model::Sampled>> sampled;
    for (const LiveRequest* request : scheduler_.logit_rows()) {
        const auto row = logits.subspan(sampled.size() * static_cast<std::size_t>(config_.vocab_size),
                                        static_cast<std::size_t>(config_.vocab_size));
        sampled.push_back(sampler_.sample({.logits = row,
                                           .params = request->sampling,
                                           .output_counts = request->output_counts,
                                           .num_generated = request->num_generated(),
                                           .position = request->num_tokens(),
                                           .seed = request->seed,
                                           .eos_id = config_.scheduler.eos_id}));
    }
    return sampled;
}

// Publishes first, so that whoever hears of a last token finds it counted.
void Rank::report() {
    stats_.running = scheduler_.num_running();
    stats_.waiting = scheduler_.num_waiting();
    stats_.free_pages = pools_.token_pages().num_free();
    stats_.total_pages = pools_.token_pages().usable();
    stats_.prompt_tokens = scheduler_.num_prompt_tokens();
    stats_.generated_tokens = scheduler_.num_generated_tokens();
    stats_.retractions = scheduler_.num_retractions();
    mailbox_.publish(stats_);
    for (Update& update : scheduler_.take_updates()) {
        const auto it = sinks_.find(raw(update.id));
        MM_CHECK(it != sinks_.end(), "an update of a request that has ended", raw(update.id));
        if (update.finish == FinishReason::kNone) {
            it->second(std::move(update));
        } else {
            const UpdateSink sink = std::move(it->second);
            sinks_.erase(it);
            sink(std::move(update));
        }
    }
}

void Rank::fail_all(const Error& error) {
    scheduler_.fail_all(error);
    report();
}

}  // namespace megamoe::engine
