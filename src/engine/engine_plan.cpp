#include "engine/engine_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <limits>
#include <string_view>

namespace megamoe::engine {
namespace {

std::string human(std::int64_t bytes) {
    constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) {
        value /= 1024;
    }
    return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 2, kUnits[unit]);
}

Result<Done> check_positive(std::int64_t value, std::string_view key) {
    if (value < 1) {
        return invalid(fmt::format("{} is {}, must be at least 1", key, value));
    }
    return Done{};
}

Result<Done> check(const EngineConfig& config, const ModelGeometry& geometry) {
    MM_TRY_DONE(check_positive(config.num_ranks, "num_ranks"));
    MM_TRY_DONE(check_positive(config.max_running_requests, "max_running_requests"));
    MM_TRY_DONE(check_positive(config.chunked_prefill_size, "chunked_prefill_size"));
    MM_TRY_DONE(check_positive(config.exchange_timeout_ms, "exchange_timeout_ms"));
    if (config.max_queued_requests < 0 || config.max_total_tokens < 0) {
        return invalid(fmt::format("max_queued_requests ({}) and max_total_tokens ({}) must not be negative",
                                   config.max_queued_requests, config.max_total_tokens));
    }
    if (config.num_ranks > comm::kMaxRanks) {
        return invalid(fmt::format("num_ranks is {}, at most {} are supported", config.num_ranks, comm::kMaxRanks));
    }
    if (config.context_length != 0 && (config.context_length < 2 || config.context_length > geometry.max_positions)) {
        return invalid(fmt::format("context_length is {}, must be 0 or from 2 to the model's {} positions",
                                   config.context_length, geometry.max_positions));
    }
    if (config.max_total_tokens == 0 && !(config.mem_fraction > 0 && config.mem_fraction <= 1)) {
        return invalid(fmt::format("mem_fraction is {}, must be above 0 and at most 1", config.mem_fraction));
    }
    return Done{};
}

std::int64_t sum(const std::vector<MemoryItem>& items) {
    std::int64_t bytes = 0;
    for (const MemoryItem& item : items) {
        bytes += item.bytes;
    }
    return bytes;
}

// Everything but the pools that depends on how many requests run at once.
void set_running(EnginePlan& plan, std::int32_t max_running, const ForwardFactory& factory) {
    plan.scheduler.max_running = max_running;
    const std::int32_t rows = std::max(plan.scheduler.max_prefill_rows, max_running);
    plan.policy.max_tokens_per_rank = static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(rows)));
    plan.limits = {.num_ranks = plan.num_ranks,
                   .max_tokens_per_rank = plan.policy.max_tokens_per_rank,
                   .max_segments = max_running};
    plan.memory = factory.memory(plan.limits);
    plan.memory.push_back({"logits", std::int64_t{max_running} * plan.vocab_size * std::int64_t{sizeof(float)}});
}

Result<kv::PoolPlan> size_pools(const EngineConfig& config, const EnginePlan& plan) {
    kv::PoolDemand demand{.max_running = plan.scheduler.max_running,
                          .context_length = plan.context_length,
                          .chunk_tokens = plan.scheduler.max_prefill_rows,
                          .max_total_tokens = config.max_total_tokens};
    if (config.max_total_tokens == 0) {
        if (plan.available_bytes < 0) {
            return invalid("max_total_tokens is 0, but this system does not tell how much memory is free");
        }
        const std::int64_t left = plan.available_bytes - sum(plan.memory) * plan.num_ranks;
        demand.budget_bytes =
            static_cast<std::int64_t>(config.mem_fraction * static_cast<double>(left)) / plan.num_ranks;
    }
    return kv::plan_pools(plan.layout, demand);
}

}  // namespace

std::int64_t EnginePlan::rank_bytes() const {
    return sum(memory);
}

Result<EnginePlan> make_engine_plan(const EngineConfig& config, const ForwardFactory& factory,
                                    std::int64_t available_bytes) {
    const ModelGeometry& geometry = factory.geometry();
    MM_TRY_DONE(check(config, geometry));
    EnginePlan plan;
    plan.num_ranks = config.num_ranks;
    plan.vocab_size = geometry.vocab_size;
    plan.context_length = config.context_length > 0 ? config.context_length : geometry.max_positions;
    plan.available_bytes = available_bytes;
    plan.scheduler.eos_id = geometry.eos_id;
    plan.scheduler.max_prefill_rows = std::max(config.chunked_prefill_size / config.num_ranks, 1);
    plan.scheduler.conservativeness = config.num_ranks > 1 ? 0.3 : 1.0;
    MM_TRY(plan.layout, kv::make_layout(geometry, config.page_size, factory.cache_value_bytes()));

    set_running(plan, std::max(config.max_running_requests / config.num_ranks, 1), factory);
    MM_TRY(plan.pools, size_pools(config, plan));
    // A request needs at least two tokens; more slots than that would stand empty.
    const std::int64_t most_running = std::max<std::int64_t>(plan.pools.token_capacity / 2, 1);
    if (most_running < plan.scheduler.max_running) {
        set_running(plan, static_cast<std::int32_t>(most_running), factory);
        MM_TRY(plan.pools, size_pools(config, plan));
    }
    plan.max_live = std::int64_t{plan.scheduler.max_running} * plan.num_ranks + config.max_queued_requests;
    plan.memory.push_back({"token pages", plan.pools.token_bytes});
    plan.memory.push_back({"window pages", plan.pools.window_bytes});
    plan.memory.push_back({"states", plan.pools.state_bytes});
    if (available_bytes >= 0 && plan.total_bytes() > available_bytes) {
        return Error{Errc::kResourceExhausted,
                     fmt::format("the engine needs {}, but {} are free:\n{}", human(plan.total_bytes()),
                                 human(available_bytes), to_string(plan)),
                     "lower max_total_tokens, max_running_requests or chunked_prefill_size"};
    }
    return plan;
}

std::string to_string(const EnginePlan& plan) {
    const kv::PoolSizes& sizes = plan.pools.sizes;
    std::string text;
    auto out = std::back_inserter(text);
    fmt::format_to(
        out, "ranks {}, context {} tokens; a rank: {} running requests, {} prefill rows a step, {} rows at most\n",
        plan.num_ranks, plan.context_length, plan.scheduler.max_running, plan.scheduler.max_prefill_rows,
        plan.policy.max_tokens_per_rank);
    fmt::format_to(out, "cache of a rank: {} tokens in {} token pages of {}, {} window pages, {} state slots\n",
                   plan.pools.token_capacity, sizes.token_pages, plan.layout.page_size, sizes.window_pages,
                   sizes.state_slots);
    fmt::format_to(out, "memory of a rank:");
    for (std::size_t i = 0; i < plan.memory.size(); ++i) {
        fmt::format_to(out, "{} {} {}", i == 0 ? "" : ",", plan.memory[i].purpose, human(plan.memory[i].bytes));
    }
    fmt::format_to(out, "\nmemory of all ranks: {} of {} free", human(plan.total_bytes()),
                   plan.available_bytes < 0 ? "unknown" : human(plan.available_bytes));
    return text;
}

}  // namespace megamoe::engine
