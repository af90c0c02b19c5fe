// Small random experts, and operators whose heap lies between red zones, for tests of the MoE operator over ranks.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <tuple>

#include "comm/rank_threads.h"
#include "compute/cpu/test_data.h"
#include "moe/mega.h"
#include "moe/operator.h"
#include "moe/reference.h"
#include "moe/standard.h"

namespace megamoe::moe::testing {

inline constexpr std::int32_t kPoolExperts = 24;

// kPoolExperts routed experts and a shared one; kept, because packing costs more than a call.
inline const LayerExperts& experts_of(ops::WeightFormat format, std::int32_t hidden, std::int32_t inter) {
    static std::map<std::tuple<ops::WeightFormat, std::int32_t, std::int32_t>, std::unique_ptr<LayerExperts>> pool;
    auto& experts = pool[{format, hidden, inter}];
    if (!experts) {
        std::uint32_t seed = 0;
        const auto matrix = [&](std::int32_t rows, std::int32_t cols) {
            return cpu::PackedMatrix::pack(
                cpu::RandomMatrix(format, ops::ScaleFormat::kE8m0, rows, cols, ++seed).view());
        };
        const auto expert = [&] {
            PackedExpert e;
            e.w1 = matrix(inter, hidden);
            e.w3 = matrix(inter, hidden);
            e.w2 = matrix(hidden, inter);
            return e;
        };
        experts = std::make_unique<LayerExperts>();
        for (std::int32_t i = 0; i < kPoolExperts; ++i) {
            experts->routed.push_back(expert());
        }
        experts->shared = expert();
    }
    return *experts;
}

inline step::StepPlan plan_of(const std::vector<std::int32_t>& rows) {
    step::StepPlan plan;
    plan.phase = step::Phase::kExtend;
    plan.num_ranks = static_cast<std::int32_t>(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
        plan.who_runs[r] = true;
        plan.real[r] = plan.run[r] = plan.logit[r] = rows[r];
    }
    return plan;
}

// An operator on a part of a larger block. It can fill what a call must not read with NaN patterns, and tell afterwards
// what was written that had no business to be.
class GuardedOperator {
  public:
    static constexpr int kCanary = 0xFF;  // NaN as float32 and as bfloat16; no row as an index

    static Result<GuardedOperator> make(MoeBackend backend, const OperatorConfig& config, const MegaOptions& options,
                                        const comm::RankContext& context, Workers& workers) {
        const std::int64_t bytes = moe::heap_bytes(backend, config, context.size);
        MM_TRY(const auto whole, context.heap.allocate(context, "test.guarded", bytes + 2 * kZone));
        GuardedOperator g;
        g.config_ = config;
        g.context_ = &context;
        g.fused_ = backend == MoeBackend::kMegaMoe1 || backend == MoeBackend::kMegaMoe2;
        g.block_ = whole.part(kZone, bytes);
        g.epoch_ = options.first_epoch;
        std::memset(whole.at(context.rank), kZoneByte, kZone);
        std::memset(whole.at(context.rank) + kZone + bytes, kZoneByte, kZone);
        MM_TRY_DONE(context.barrier("test.guarded.ready"));
        if (g.fused_) {
            g.op_ = std::make_unique<MegaOperator>(config, backend == MoeBackend::kMegaMoe1 ? 1 : 2, options, context,
                                                   g.block_, workers);
        } else if (backend == MoeBackend::kStandard) {
            g.op_ = std::make_unique<StandardOperator>(config, context, g.block_, workers);
        } else {
            g.op_ = std::make_unique<ReferenceOperator>(config, context, g.block_, workers);
        }
        return g;
    }

    std::string_view name() const { return op_->name(); }
    Result<Done> forward(const Input& input, const LayerExperts& experts, const step::StepPlan& plan, float* out) {
        epoch_ = calls_++ == 0 ? epoch_ : mega::next_epoch(epoch_);
        return op_->forward(input, experts, plan, out);
    }

    // Every byte of this rank's block that no earlier call needs any more. Nobody may be in a call.
    void lay_canaries() {
        std::byte* mine = block_.at(context_->rank);
        if (!fused_) {
            std::memset(mine, kCanary, static_cast<std::size_t>(block_.bytes()));
            return;
        }
        const mega::HeapLayout l = layout();
        std::memset(mine + l.index, kCanary, static_cast<std::size_t>(l.bytes - l.index));
    }

    // What lay_canaries() laid still lies wherever the last call had nothing to write. `ids`: what each rank brought to
    // it. Nobody may be in a call.
    bool canaries_are_whole(const std::vector<const std::vector<std::int32_t>*>& ids) const {
        return !fused_ || (inputs_are_whole(*ids[me()]) && lists_are_whole(ids));
    }

    bool red_zones_are_whole() const {
        const std::byte* begin = block_.at(context_->rank);
        return all_are(begin - kZone, kZone, kZoneByte) && all_are(begin + block_.bytes(), kZone, kZoneByte);
    }

  private:
    static constexpr std::int64_t kZone = 4096;
    static constexpr int kZoneByte = 0xA5;

    static bool all_are(const std::byte* at, std::int64_t bytes, int value) {
        return std::all_of(at, at + bytes, [=](std::byte b) { return b == static_cast<std::byte>(value); });
    }
    std::size_t me() const { return static_cast<std::size_t>(raw(context_->rank)); }
    mega::Shape shape() const { return MegaOperator::shape_of(config_, context_->size); }
    mega::HeapLayout layout() const { return mega::heap_layout(shape(), MegaOperator::wire_of(config_.math)); }

    bool inputs_are_whole(const std::vector<std::int32_t>& ids) const {
        const mega::HeapLayout l = layout();
        const mega::Wire wire = MegaOperator::wire_of(config_.math);
        const std::byte* mine = block_.at(context_->rank);
        const auto pairs = static_cast<std::int64_t>(ids.size());
        const std::int64_t max_pairs = std::int64_t{config_.max_rows} * config_.top_k;
        const auto unused = [&](std::int64_t area, std::int64_t used, std::int64_t capacity, std::int64_t bytes) {
            return all_are(mine + area + used * bytes, (capacity - used) * bytes, kCanary);
        };
        bool whole = unused(l.x, pairs / config_.top_k, config_.max_rows, wire.row_bytes) &&
                     unused(l.topk_id, pairs, max_pairs, 4) && unused(l.topk_weight, pairs, max_pairs, 4) &&
                     unused(l.combine, pairs, max_pairs, wire.return_bytes);
        for (std::int64_t pair = 0; pair < pairs; ++pair) {
            const std::int32_t id = ids[static_cast<std::size_t>(pair)];
            if (id < 0 || id >= config_.num_experts) {
                whole = whole && all_are(mine + l.combine + pair * wire.return_bytes, wire.return_bytes, kCanary);
            }
        }
        return whole;
    }

    // The other bank was not touched, and no list is longer than its count.
    bool lists_are_whole(const std::vector<const std::vector<std::int32_t>*>& ids) const {
        const mega::Shape s = shape();
        const std::byte* index = block_.at(context_->rank) + layout().index;
        const std::int64_t list_bytes = std::int64_t{s.max_rows} * 4;
        bool whole = true;
        for (std::int32_t local = 0; local < s.local_experts(); ++local) {
            const std::int32_t expert = raw(context_->rank) * s.local_experts() + local;
            for (std::int32_t source = 0; source < s.num_ranks; ++source) {
                const auto& theirs = *ids[static_cast<std::size_t>(source)];
                const std::int64_t count =
                    std::min<std::int64_t>(std::count(theirs.begin(), theirs.end(), expert), s.max_rows);
                const std::int64_t used = mega::count_index(s, epoch_, local, source) * list_bytes;
                const std::int64_t other = mega::count_index(s, epoch_ + 1, local, source) * list_bytes;
                whole = whole && all_are(index + used + count * 4, list_bytes - count * 4, kCanary) &&
                        all_are(index + other, list_bytes, kCanary);
            }
        }
        return whole;
    }

    OperatorConfig config_;
    const comm::RankContext* context_ = nullptr;
    comm::SymmetricBlock block_;
    bool fused_ = false;
    mega::Epoch epoch_ = 0;  // of the last call
    std::int64_t calls_ = 0;
    std::unique_ptr<Operator> op_;
};

}  // namespace megamoe::moe::testing
