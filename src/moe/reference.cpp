#include "moe/reference.h"

#include <algorithm>

#include "moe/wire.h"

namespace megamoe::moe {
namespace {

// A rank's block: rows | expert ids | weights | combine area.
struct Areas {
    std::int64_t ids;
    std::int64_t weights;
    std::int64_t combine;
    std::int64_t end;
};

Areas areas(const OperatorConfig& c) {
    Areas a{};
    const std::int64_t choices = std::int64_t{c.max_rows} * c.top_k * 4;
    a.ids = align64(c.max_rows * wire_row_bytes(c.math));
    a.weights = a.ids + align64(choices);
    a.combine = a.weights + align64(choices);
    a.end = a.combine + combine_bytes(c);
    return a;
}

}  // namespace

std::int64_t ReferenceOperator::heap_bytes(const OperatorConfig& config) {
    return areas(config).end;
}

void ReferenceOperator::publish(const Input& input) {
    const Areas a = areas(config_);
    std::byte* mine = block_.at(context_.rank);
    const std::int64_t choices = std::int64_t{input.rows} * config_.top_k;
    std::copy_n(input.expert_id, choices, reinterpret_cast<std::int32_t*>(mine + a.ids));
    std::copy_n(input.weight, choices, reinterpret_cast<float*>(mine + a.weights));
    for (std::int64_t row = 0; row < input.rows; ++row) {
        write_wire(config_.math, quantised_.data() + row * config_.math.hidden, config_.math.hidden,
                   mine + row * wire_row_bytes(config_.math));
    }
}

void ReferenceOperator::compute_for(RankId owner, std::int32_t rows, const LayerExperts& experts) {
    const Areas a = areas(config_);
    const ExpertShard shard = shard_of(config_, context_.size, context_.rank);
    std::byte* theirs = block_.at(owner);
    const auto* ids = block_.as<std::int32_t>(owner, a.ids);
    const auto* weights = block_.as<float>(owner, a.weights);
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int32_t k = 0; k < config_.top_k; ++k) {
            const std::int64_t choice = row * config_.top_k + k;
            if (!shard.owns(ids[choice])) {
                continue;
            }
            read_wire(config_.math, theirs + row * wire_row_bytes(config_.math), row_in_.data());
            run_expert(config_.math, workers_, experts.routed[static_cast<std::size_t>(ids[choice])], row_in_.data(),
                       weights + choice, 1, row_out_.data());
            write_wire(config_.math, row_out_.data(), config_.math.hidden,
                       combine_row(config_, theirs + a.combine, row, k));
        }
    }
}

Result<Done> ReferenceOperator::run(const Input& input, const LayerExperts& experts, const step::StepPlan& plan,
                                    float* out) {
    const auto floats = static_cast<std::size_t>(input.rows) * static_cast<std::size_t>(config_.math.hidden);
    quantised_.resize(floats);
    shared_.resize(floats);
    row_in_.resize(static_cast<std::size_t>(config_.math.hidden));
    row_out_.resize(static_cast<std::size_t>(config_.math.hidden));
    quantise_rows(config_.math, workers_, input.x, input.rows, quantised_.data());
    publish(input);
    MM_TRY_DONE(context_.barrier("moe.dispatch"));
    for (std::int32_t r = 0; r < context_.size; ++r) {
        compute_for(RankId{r}, plan.run[static_cast<std::size_t>(r)], experts);
    }
    run_expert(config_.math, workers_, experts.shared, quantised_.data(), nullptr, input.rows, shared_.data());
    MM_TRY_DONE(context_.barrier("moe.return"));
    combine(config_, workers_, input, block_.at(context_.rank) + areas(config_).combine, shared_.data(), out);
    return Done{};
}

}  // namespace megamoe::moe
