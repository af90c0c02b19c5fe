#include "engine/model_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "engine/engine.h"
#include "model/forward.h"

namespace megamoe::engine {
namespace {

class ModelForward final : public ForwardPort {
  public:
    ModelForward(RankId rank, std::int32_t threads) : rank_(rank), workers_(threads) {}

    Result<Done> open(const comm::RankContext& context, std::shared_ptr<const model::LoadedModel> model,
                      const EngineConfig& config, cpu::Isa isa, kv::Pools& pools, const ForwardLimits& limits) {
        const auto moe_config = operator_config(*model, config.profile, isa, limits.max_tokens_per_rank);
        MM_TRY(moe_, moe::make_operator(config.moe_backend, moe_config, context, workers_));
        forward_.emplace(std::move(model), config.profile, isa, pools, *moe_, workers_);
        return Done{};
    }

    Result<Done> forward(std::span<const Segment> segments, const step::StepPlan& plan,
                         std::span<float> logits) override {
        segments_.clear();
        for (const Segment& s : segments) {
            segments_.push_back({s.seq, s.tokens, s.start, s.want_logits ? 1 : 0});
        }
        return forward_->run(segments_, plan, rank_, logits);
    }

  private:
    RankId rank_;
    Workers workers_;
    std::unique_ptr<moe::Operator> moe_;
    std::optional<model::Forward> forward_;
    std::vector<model::Segment> segments_;
};

class ModelForwardFactory final : public ForwardFactory {
  public:
    ModelForwardFactory(const EngineConfig& config, cpu::Isa isa, std::shared_ptr<const model::LoadedModel> model)
        : config_(config), isa_(isa), model_(std::move(model)) {}

    const ModelGeometry& geometry() const override { return model_->geometry(); }
    std::int32_t cache_value_bytes() const override { return config_.profile == Profile::kDs ? 2 : 4; }

    std::vector<MemoryItem> memory(const ForwardLimits& limits) const override {
        const auto moe_config = operator_config(*model_, config_.profile, isa_, limits.max_tokens_per_rank);
        return {{"MoE exchange", moe::heap_bytes(config_.moe_backend, moe_config, limits.num_ranks)}};
    }

    Result<std::unique_ptr<ForwardPort>> create(const comm::RankContext& rank, kv::Pools& pools,
                                                const ForwardLimits& limits) const override {
        auto port = std::make_unique<ModelForward>(rank.rank, threads_per_rank(limits.num_ranks));
        MM_TRY_DONE(port->open(rank, model_, config_, isa_, pools, limits));
        return std::unique_ptr<ForwardPort>(std::move(port));
    }

    std::int32_t threads_per_rank(std::int32_t num_ranks) const {
        if (config_.threads_per_rank > 0) {
            return config_.threads_per_rank;
        }
        return std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()) / num_ranks);
    }

  private:
    EngineConfig config_;
    cpu::Isa isa_;
    std::shared_ptr<const model::LoadedModel> model_;
};

}  // namespace

Result<std::shared_ptr<const ForwardFactory>> make_forward_factory(const EngineConfig& config,
                                                                   std::shared_ptr<const model::LoadedModel> model) {
    cpu::Isa isa = cpu::detect_isa();
    if (!config.isa.empty()) {
        MM_TRY(isa, cpu::parse_isa(config.isa));
    }
    auto factory = std::make_shared<ModelForwardFactory>(config, isa, std::move(model));
    log::info(fmt::format("compute isa={} threads_per_rank={} moe={} profile={}", cpu::name(isa),
                          factory->threads_per_rank(config.num_ranks), name(config.moe_backend),
                          config.profile == Profile::kDs ? "ds" : "hf"));
    return std::shared_ptr<const ForwardFactory>(std::move(factory));
}

Result<std::unique_ptr<Engine>> Engine::start(const EngineConfig& config,
                                              std::shared_ptr<const model::LoadedModel> model) {
    MM_TRY(const auto factory, make_forward_factory(config, std::move(model)));
    return start(config, factory);
}

}  // namespace megamoe::engine
