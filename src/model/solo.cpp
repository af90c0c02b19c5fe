#include "model/solo.h"

#include <fmt/format.h>

#include <numeric>

#include "base/check.h"

namespace megamoe::model {

std::int32_t page_size_for(const ModelGeometry& geometry, std::int32_t at_least) {
    std::int32_t unit = 1;
    for (const std::int32_t ratio : geometry.ratios) {
        unit = ratio > 0 ? std::lcm(unit, ratio) : unit;
    }
    return (at_least + unit - 1) / unit * unit;
}

Solo::Solo(std::shared_ptr<const LoadedModel> model, const SoloOptions& options)
    : model_(std::move(model)), options_(options), workers_(options.threads) {}

Result<std::unique_ptr<Solo>> Solo::create(std::shared_ptr<const LoadedModel> model, const SoloOptions& options) {
    std::unique_ptr<Solo> solo(new Solo(std::move(model), options));
    const ModelGeometry& g = solo->geometry();
    const std::int32_t page = options.page_size > 0 ? options.page_size : page_size_for(g, 256);
    const std::int32_t length = options.max_length > 0 ? options.max_length : g.max_positions;
    MM_TRY(const auto layout, kv::make_layout(g, page, options.profile == Profile::kDs ? 2 : 4));
    const kv::PoolSizes sizes{
        .token_pages = options.max_sequences * layout.pages_of(length) + 1,
        .window_pages = options.max_sequences * layout.pages_of(g.window + options.max_rows + 2 * page) + 1,
        .state_slots = options.max_sequences + 1};
    MM_TRY(solo->pools_, kv::Pools::create(layout, sizes));
    moe::OperatorConfig config = operator_config(*solo->model_, options.profile, options.isa, options.max_rows);
    config.math.limit = options.swiglu_limit.value_or(config.math.limit);
    const comm::RankContext context{RankId{0}, 1, solo->group_, solo->heap_};
    MM_TRY(solo->moe_, moe::make_operator(options.backend, config, context, solo->workers_));
    solo->forward_ = std::make_unique<Forward>(solo->model_, options.profile, options.isa, *solo->pools_, *solo->moe_,
                                               solo->workers_);
    return solo;
}

Result<kv::Sequence> Solo::open() {
    auto sequence = kv::Sequence::open(*pools_);
    if (!sequence) {
        return Error{Errc::kResourceExhausted, fmt::format("all {} sequences are in use", options_.max_sequences),
                     "close one, or ask for more"};
    }
    return std::move(*sequence);
}

Result<std::vector<float>> Solo::extend(kv::Sequence& sequence, std::span<const std::int32_t> tokens,
                                        std::int32_t num_logits, Tap* tap) {
    const Feed feed{&sequence, tokens, num_logits};
    return extend({&feed, 1}, tap);
}

Result<std::vector<float>> Solo::extend(std::span<const Feed> feeds, Tap* tap) {
    std::vector<Segment> segments;
    std::int32_t rows = 0;
    std::int32_t wanted = 0;
    for (const Feed& feed : feeds) {
        const auto count = static_cast<std::int32_t>(feed.tokens.size());
        MM_CHECK(count > 0 && feed.num_logits <= count, "tokens", count, "num_logits", feed.num_logits);
        segments.push_back({feed.sequence, feed.tokens, feed.sequence->length(), feed.num_logits});
        rows += count;
        wanted += feed.num_logits;
        if (!feed.sequence->reserve(feed.sequence->length() + count)) {
            return Error{Errc::kResourceExhausted,
                         fmt::format("no cache pages for {} tokens", feed.sequence->length() + count),
                         "use a shorter text or a larger max_length"};
        }
    }
    if (rows > options_.max_rows) {
        return invalid(fmt::format("{} tokens in one step, at most {} fit", rows, options_.max_rows), "feed chunks");
    }
    step::StepPlan plan;
    plan.phase = step::Phase::kExtend;
    plan.num_ranks = 1;
    plan.bucket = options_.max_rows;
    plan.who_runs[0] = true;
    plan.real[0] = plan.run[0] = rows;
    plan.logit[0] = wanted;
    std::vector<float> logits(static_cast<std::size_t>(wanted) * static_cast<std::size_t>(geometry().vocab_size));
    MM_TRY_DONE(forward_->run(segments, plan, RankId{0}, logits, tap));
    for (const Feed& feed : feeds) {
        feed.sequence->commit(feed.sequence->length() + static_cast<std::int32_t>(feed.tokens.size()));
    }
    return logits;
}

}  // namespace megamoe::model
