#include "moe/op/op_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/cores.h"
#include "comm/rank_threads.h"

namespace megamoe::moe::op {
namespace {

constexpr std::int64_t kReferenceRows = 2;  // a rank: `reference` is slow, and a row's bits depend on that row alone
constexpr std::int32_t kFewestRepeats = 3;
constexpr std::size_t kNumBackends = kTimedBackends.size();

// The first rows of every rank.
Split first_rows(const Split& split) {
    Split few{0};
    for (std::size_t r = 0; r + 1 < split.size(); ++r) {
        few.push_back(few.back() + std::min(kReferenceRows, split[r + 1] - split[r]));
    }
    return few;
}

// Threads that the calling rank starts later stay on its cores too.
void take_own_cores(std::int32_t rank, std::int32_t num_ranks, std::int32_t threads_per_rank) {
    if (ranks_have_cores(num_ranks, threads_per_rank)) {
        const auto cores = allowed_cores();
        const auto count = static_cast<std::size_t>(threads_per_rank);
        (void)keep_on_cores(std::span(cores).subspan(static_cast<std::size_t>(rank) * count, count));
    }
}

// One rank of a case; all ranks call the same members in the same order.
class RankTimer {
  public:
    RankTimer(const TimingCase& c, const comm::RankContext& context)
        : case_(c),
          context_(context),
          workers_(c.threads_per_rank),
          plan_(make_plan(c.split)),
          input_(input_of(c.batch, c.geometry, c.split, raw(context.rank))),
          out_(static_cast<std::size_t>(input_.rows) * static_cast<std::size_t>(c.geometry.hidden)) {}

    Result<Done> check() {
        MM_TRY(const auto expected, first_rows_by_reference());
        std::vector<float> standard;
        for (const MoeBackend backend : kTimedBackends) {
            MM_TRY(auto op,
                   make_operator(backend, make_config(case_.geometry, case_.isa, plan_.bucket), context_, workers_));
            operators_.push_back(std::move(op));
            MM_TRY_DONE(forward(operators_.size() - 1));
            if (backend == MoeBackend::kStandard) {
                standard = out_;
            }
            MM_TRY_DONE(compare(backend, expected, "reference"));
            MM_TRY_DONE(compare(backend, standard, "standard"));
        }
        return Done{};
    }

    // One forward of every backend. Each repetition starts with another one.
    Result<Done> repeat(std::int32_t repetition, std::array<BackendSamples, kNumBackends>& samples) {
        for (std::size_t i = 0; i < kNumBackends; ++i) {
            const std::size_t b = (i + static_cast<std::size_t>(repetition)) % kNumBackends;
            MM_TRY_DONE(context_.barrier("op.start"));
            Sample& sample =
                samples[b][static_cast<std::size_t>(repetition)][static_cast<std::size_t>(raw(context_.rank))];
            sample.begin_ns = now_ns();
            MM_TRY_DONE(forward(b));
            sample.end_ns = now_ns();
            sample.stages = operators_[b]->stage_times();
        }
        return Done{};
    }

  private:
    Result<Done> forward(std::size_t backend) {
        return operators_[backend]->forward(input_, case_.experts, plan_, out_.data());
    }

    Result<std::vector<float>> first_rows_by_reference() {
        const step::StepPlan plan = make_plan(first_rows(case_.split));
        const auto config = make_config(case_.geometry, case_.isa, plan.bucket);
        MM_TRY(const auto op, make_operator(MoeBackend::kReference, config, context_, workers_));
        Input few = input_;
        few.rows = plan.run[static_cast<std::size_t>(raw(context_.rank))];
        std::vector<float> out(static_cast<std::size_t>(few.rows) * static_cast<std::size_t>(case_.geometry.hidden));
        MM_TRY_DONE(op->forward(few, case_.experts, plan, out.data()));
        return out;
    }

    Result<Done> compare(MoeBackend backend, const std::vector<float>& expected, const char* name_of_expected) const {
        if (!expected.empty() && std::memcmp(out_.data(), expected.data(), expected.size() * sizeof(float)) != 0) {
            return Error{Errc::kInternal,
                         fmt::format("backend {} gives other bits than {} on rank {}", name(backend), name_of_expected,
                                     raw(context_.rank)),
                         "`megamoe op check` says more"};
        }
        return Done{};
    }

    const TimingCase& case_;
    const comm::RankContext context_;
    Workers workers_;
    const step::StepPlan plan_;
    const Input input_;
    std::vector<float> out_;
    std::vector<std::unique_ptr<Operator>> operators_;  // by kTimedBackends
};

}  // namespace

bool ranks_have_cores(std::int32_t num_ranks, std::int32_t threads_per_rank) {
    return static_cast<std::int64_t>(allowed_cores().size()) >= std::int64_t{num_ranks} * threads_per_rank;
}

Result<std::array<BackendSamples, kNumBackends>> time_backends(const TimingCase& c) {
    const auto num_ranks = static_cast<std::int32_t>(c.split.size()) - 1;
    std::array<BackendSamples, kNumBackends> samples;
    const auto most = static_cast<std::size_t>(std::max(c.repeats, kFewestRepeats));
    samples.fill(BackendSamples(most, std::vector<Sample>(static_cast<std::size_t>(num_ranks))));
    std::atomic<std::int32_t> repeats{static_cast<std::int32_t>(most)};
    const auto run_rank = [&](const comm::RankContext& context) -> Result<Done> {
        take_own_cores(raw(context.rank), num_ranks, c.threads_per_rank);
        RankTimer timer(c, context);
        MM_TRY_DONE(timer.check());
        const std::int64_t begin = now_ns();
        for (std::int32_t repetition = 0; repetition < repeats.load(); ++repetition) {
            MM_TRY_DONE(timer.repeat(repetition, samples));
            // Rank 0 decides for all, between two barriers.
            const bool late = static_cast<double>(now_ns() - begin) > c.seconds * 1e9;
            if (raw(context.rank) == 0 && late && repetition + 1 >= kFewestRepeats) {
                repeats.store(repetition + 1);
            }
            MM_TRY_DONE(context.barrier("op.repeat"));
        }
        return Done{};
    };
    comm::RankGroup group(num_ranks);
    comm::SymmetricHeap heap;
    if (const auto ran = comm::run_ranks(group, heap, run_rank); !ran) {
        return ran.error();
    }
    for (BackendSamples& of_backend : samples) {
        of_backend.resize(static_cast<std::size_t>(repeats.load()));
    }
    return samples;
}

}  // namespace megamoe::moe::op
