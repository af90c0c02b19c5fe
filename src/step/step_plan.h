// What all ranks agree on for one step: a pure function of the proposals they exchanged. No I/O, no clock.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "comm/rank_group.h"

namespace megamoe::step {

using comm::kMaxRanks;

enum class Phase : std::uint8_t {
    kIdle,    // no rows; of a plan: nobody runs, the step is skipped
    kDecode,  // one row a request
    kExtend,  // prefill, any chunk
};

// One rank's wish, exchanged as 16 words of int64 in this order.
// Spec  serving spec, 1.4
struct StepProposal {
    static constexpr std::int64_t kVersion = 0x4D4D'0001;  // "MM", layout 1

    std::int64_t version = kVersion;
    std::int64_t step_no = 0;   // steps executed so far
    std::int64_t phase = 0;     // of Phase
    std::int64_t n_tokens = 0;  // real rows
    std::int64_t n_logit_rows = 0;
    std::int64_t decode_graph_ok = 0;
    std::int64_t prefill_graph_ok = 0;
    std::int64_t eplb_map_version = 0;
    std::int64_t prefillable = 0;  // this rank could extend now
    std::int64_t kv_low = 0;
    std::int64_t running_reqs = 0;
    std::int64_t recent_max_prefill_bs = 0;
    std::int64_t waiting_reqs = 0;
    std::int64_t max_running_reqs = 0;
    std::int64_t pending_prefill_tokens = 0;
    std::int64_t flags =
        0;  // low half: bits below; high half: the wake-up wave this rank saw before it looked for work

    enum Flag : std::int64_t {
        kTimeoutVote = 1 << 0,
        kShutdownVote = 1 << 1,
        kHasPartialChunk = 1 << 2,
        kKvHigh = 1 << 3,
        kPauseVote = 1 << 4,
        kAnyUnfinished = 1 << 5,
        kOverlapDisabled = 1 << 6,
        kOldestOverSlo = 1 << 7,
    };
    bool has(Flag flag) const { return (flags & flag) != 0; }
    void set(Flag flag) { flags |= flag; }
    std::uint32_t wake_wave() const { return static_cast<std::uint32_t>(static_cast<std::uint64_t>(flags) >> 32); }
    void set_wake_wave(std::uint32_t wave);

    friend bool operator==(const StepProposal&, const StepProposal&) = default;
};
inline constexpr std::size_t kProposalWords = 16;
static_assert(sizeof(StepProposal) == kProposalWords * sizeof(std::int64_t));

// What a decode rank does in a step in which another rank extends.
enum class MixedPhase : std::uint8_t {
    kDeferDecode,  // idles: every step has one phase
    kAllow,        // decodes
};

enum class ExtendBucket : std::uint8_t { kPow2, kPinned };

struct StepPolicy {
    std::int32_t max_tokens_per_rank = 1;  // MTPR, a power of two
    MixedPhase mixed_phase = MixedPhase::kDeferDecode;
    ExtendBucket extend_bucket = ExtendBucket::kPow2;
};

// Vectors are always full length and indexed by rank; entries at and past num_ranks are 0. Each consumer says which it
// takes: attention and load recording `real`, MoE and collective sizes `run`, the head `logit`.
// Spec  serving spec, 1.6 and 2.3
struct StepPlan {
    std::int64_t step_no = 0;  // number of this step if it runs
    Phase phase = Phase::kIdle;
    std::int32_t num_ranks = 0;
    std::int32_t bucket = 0;  // rows the MoE kernels are configured for; the same on idle ranks
    std::int64_t map_version = 0;
    bool shutdown = false;                        // all ranks leave the loop now
    bool pause = false;                           // nobody has work: sleep until a wake-up later than `wake_wave`
    std::uint32_t wake_wave = 0;                  // the oldest wave any rank saw
    std::array<bool, kMaxRanks> who_runs{};       // false: takes part with one dummy row
    std::array<std::int32_t, kMaxRanks> real{};   // rows owned by requests
    std::array<std::int32_t, kMaxRanks> run{};    // rows processed, dummies included: max(real, 1)
    std::array<std::int32_t, kMaxRanks> logit{};  // rows whose logits are wanted

    bool skipped() const { return phase == Phase::kIdle; }
    std::int32_t max_run() const;
    std::int64_t sum_real() const;
    friend bool operator==(const StepPlan&, const StepPlan&) = default;
};

// min(max_tokens_per_rank, next power of two of max(num_tokens, 1))
std::int32_t bucket_of(std::int32_t num_tokens, const StepPolicy& policy);

// The plan of the step that `proposals` (one a rank, in rank order) ask for.
//
// Error kInternal, naming the ranks and both values: version, step_no or map version differ between ranks; a proposal
//       that contradicts itself; more rows than max_tokens_per_rank
// Same  the same on every rank, as it reads nothing but its arguments
// Spec  serving spec, 2.3 and 2.4
[[nodiscard]] Result<StepPlan> agree(std::span<const StepProposal> proposals, const StepPolicy& policy);

}  // namespace megamoe::step
