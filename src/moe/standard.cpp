#include "moe/standard.h"

#include <algorithm>
#include <cstring>

#include "moe/wire.h"

namespace megamoe::moe {
namespace {

// A rank's block holds, for each source, a region of received rows: count | token of each slot | ids | weights | rows;
// behind them the combine area, which the owners of this rank's experts write.
struct Region {
    std::int64_t token;
    std::int64_t ids;
    std::int64_t weights;
    std::int64_t rows;
    std::int64_t bytes;
};

Region region(const OperatorConfig& c) {
    Region r{};
    const std::int64_t choices = std::int64_t{c.max_rows} * c.top_k * 4;
    r.token = 64;
    r.ids = r.token + align64(std::int64_t{c.max_rows} * 4);
    r.weights = r.ids + align64(choices);
    r.rows = r.weights + align64(choices);
    r.bytes = r.rows + align64(c.max_rows * wire_row_bytes(c.math));
    return r;
}

}  // namespace

std::int64_t StandardOperator::heap_bytes(const OperatorConfig& config, std::int32_t num_ranks) {
    return num_ranks * region(config).bytes + combine_bytes(config);
}

StandardOperator::StandardOperator(const OperatorConfig& config, const comm::RankContext& context,
                                   comm::SymmetricBlock block, Workers& workers)
    : Operator(config, context),
      block_(block),
      workers_(workers),
      shard_(shard_of(config, context.size, context.rank)),
      batches_(static_cast<std::size_t>(shard_.count)) {}

void StandardOperator::dispatch(const Input& input) {
    const Region r = region(config_);
    const std::int64_t row_bytes = wire_row_bytes(config_.math);
    const auto choice_bytes = static_cast<std::size_t>(config_.top_k) * 4;
    // A row goes to each rank once, however many of its experts live there.
    workers_.run(context_.size, [&](std::int64_t dest) {
        const ExpertShard theirs = shard_of(config_, context_.size, RankId{static_cast<std::int32_t>(dest)});
        std::byte* base = block_.at(RankId{static_cast<std::int32_t>(dest)}) + raw(context_.rank) * r.bytes;
        std::int32_t count = 0;
        for (std::int32_t token = 0; token < input.rows; ++token) {
            const std::int32_t* ids = input.expert_id + std::int64_t{token} * config_.top_k;
            if (std::none_of(ids, ids + config_.top_k, [&](std::int32_t id) { return theirs.owns(id); })) {
                continue;
            }
            std::memcpy(base + r.token + std::int64_t{count} * 4, &token, 4);
            std::memcpy(base + r.ids + count * static_cast<std::int64_t>(choice_bytes), ids, choice_bytes);
            std::memcpy(base + r.weights + count * static_cast<std::int64_t>(choice_bytes),
                        input.weight + std::int64_t{token} * config_.top_k, choice_bytes);
            write_wire(config_.math, quantised_.data() + std::int64_t{token} * config_.math.hidden, config_.math.hidden,
                       base + r.rows + count * row_bytes);
            ++count;
        }
        std::memcpy(base, &count, 4);
    });
}

void StandardOperator::group_by_expert() {
    const Region r = region(config_);
    for (Batch& batch : batches_) {
        batch.tasks.clear();
    }
    for (std::int32_t source = 0; source < context_.size; ++source) {
        const std::int64_t base = source * r.bytes;
        const std::int32_t count = *block_.as<std::int32_t>(context_.rank, base);
        const auto* token = block_.as<std::int32_t>(context_.rank, base + r.token);
        const auto* ids = block_.as<std::int32_t>(context_.rank, base + r.ids);
        const auto* weights = block_.as<float>(context_.rank, base + r.weights);
        for (std::int32_t slot = 0; slot < count; ++slot) {
            for (std::int32_t k = 0; k < config_.top_k; ++k) {
                const std::int64_t choice = std::int64_t{slot} * config_.top_k + k;
                if (shard_.owns(ids[choice])) {
                    batches_[static_cast<std::size_t>(ids[choice] - shard_.first)].tasks.push_back(
                        {source, slot, token[slot], k, weights[choice]});
                }
            }
        }
    }
    active_.clear();
    for (std::int32_t e = 0; e < shard_.count; ++e) {
        if (!batches_[static_cast<std::size_t>(e)].tasks.empty()) {
            active_.push_back(e);
        }
    }
}

void StandardOperator::run_batch(const PackedExpert& expert, Workers& workers, Batch& batch) {
    const Region r = region(config_);
    const std::int64_t h = config_.math.hidden;
    const std::int64_t row_bytes = wire_row_bytes(config_.math);
    const std::size_t n = batch.tasks.size();
    batch.in.resize(n * static_cast<std::size_t>(h));
    batch.out.resize(n * static_cast<std::size_t>(h));
    batch.weight.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        const Task& t = batch.tasks[i];
        const std::byte* row = block_.at(context_.rank) + t.source * r.bytes + r.rows + t.slot * row_bytes;
        read_wire(config_.math, row, batch.in.data() + static_cast<std::int64_t>(i) * h);
        batch.weight[i] = t.weight;
    }
    run_expert(config_.math, workers, expert, batch.in.data(), batch.weight.data(), static_cast<std::int32_t>(n),
               batch.out.data());
    for (std::size_t i = 0; i < n; ++i) {
        const Task& t = batch.tasks[i];
        std::byte* area = block_.at(RankId{t.source}) + context_.size * r.bytes;
        write_wire(config_.math, batch.out.data() + static_cast<std::int64_t>(i) * h, config_.math.hidden,
                   combine_row(config_, area, t.token, t.k));
    }
}

void StandardOperator::run_batches(const LayerExperts& experts) {
    const auto run = [&](std::int32_t local, Workers& workers) {
        run_batch(experts.routed[static_cast<std::size_t>(shard_.first + local)], workers,
                  batches_[static_cast<std::size_t>(local)]);
    };
    // Many experts: one a thread, no meeting in between. Few: the whole team works on each.
    if (static_cast<std::int32_t>(active_.size()) >= 2 * workers_.size()) {
        workers_.run(static_cast<std::int64_t>(active_.size()), [&](std::int64_t i) {
            Workers alone(1);
            run(active_[static_cast<std::size_t>(i)], alone);
        });
        return;
    }
    for (const std::int32_t local : active_) {
        run(local, workers_);
    }
}

Result<Done> StandardOperator::run(const Input& input, const LayerExperts& experts, const step::StepPlan&, float* out) {
    const auto floats = static_cast<std::size_t>(input.rows) * static_cast<std::size_t>(config_.math.hidden);
    quantised_.resize(floats);
    shared_.resize(floats);
    clock_.start();
    quantise_rows(config_.math, workers_, input.x, input.rows, quantised_.data());
    dispatch(input);
    clock_.lap(Stage::kDispatch);
    MM_TRY_DONE(context_.barrier("moe.dispatch"));
    clock_.lap(Stage::kWait);
    group_by_expert();
    run_batches(experts);
    clock_.lap(Stage::kExperts);
    run_expert(config_.math, workers_, experts.shared, quantised_.data(), nullptr, input.rows, shared_.data());
    clock_.lap(Stage::kShared);
    // A peer's next dispatch may overwrite this rank's receive regions only after it has passed this barrier, and its
    // next results may overwrite the combine area only after the next dispatch barrier: one set of buffers is enough.
    MM_TRY_DONE(context_.barrier("moe.return"));
    clock_.lap(Stage::kWait);
    combine(config_, workers_, input, block_.at(context_.rank) + context_.size * region(config_).bytes, shared_.data(),
            out);
    clock_.lap(Stage::kCombine);
    return Done{};
}

}  // namespace megamoe::moe
