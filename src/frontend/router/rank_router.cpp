#include "frontend/router/rank_router.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/check.h"

namespace megamoe::router {
namespace {

constexpr std::array kMethods{
    std::pair{BalanceMethod::kRoundRobin, std::string_view("round_robin")},
    std::pair{BalanceMethod::kTotalRequests, std::string_view("total_requests")},
    std::pair{BalanceMethod::kTotalTokens, std::string_view("total_tokens")},
};

bool is_lighter(BalanceMethod method, const RankLoad& a, const RankLoad& b) {
    if (method == BalanceMethod::kTotalTokens && a.tokens != b.tokens) {
        return a.tokens < b.tokens;
    }
    return a.requests < b.requests;
}

}  // namespace

Result<BalanceMethod> parse_balance_method(std::string_view name) {
    for (const auto& [method, known] : kMethods) {
        if (known == name) {
            return method;
        }
    }
    return invalid(fmt::format("load balance method '{}' is unknown", name),
                   "use round_robin, total_requests or total_tokens");
}

std::string_view to_string(BalanceMethod method) {
    for (const auto& [known, name] : kMethods) {
        if (known == method) {
            return name;
        }
    }
    return "unknown";
}

RankRouter::RankRouter(BalanceMethod method, std::int32_t num_ranks)
    : method_(method), loads_(static_cast<std::size_t>(num_ranks)) {
    MM_CHECK(num_ranks >= 1, "a router needs a rank", num_ranks);
}

std::int32_t RankRouter::pick() const {
    if (method_ == BalanceMethod::kRoundRobin) {
        return next_;
    }
    const auto num_ranks = static_cast<std::int32_t>(loads_.size());
    std::int32_t best = next_;
    for (std::int32_t step = 1; step < num_ranks; ++step) {
        const std::int32_t rank = (next_ + step) % num_ranks;
        if (is_lighter(method_, loads_[static_cast<std::size_t>(rank)], loads_[static_cast<std::size_t>(best)])) {
            best = rank;
        }
    }
    return best;
}

Result<std::int32_t> RankRouter::dispatch(std::int64_t prompt_tokens, std::optional<std::int32_t> wanted) {
    const auto num_ranks = static_cast<std::int32_t>(loads_.size());
    if (wanted && (*wanted < 0 || *wanted >= num_ranks)) {
        return invalid(fmt::format("routed_dp_rank is {}, must be in [0, {}]", *wanted, num_ranks - 1));
    }
    const std::int32_t rank = wanted ? *wanted : pick();
    if (!wanted) {
        next_ = (rank + 1) % num_ranks;
    }
    RankLoad& load = loads_[static_cast<std::size_t>(rank)];
    load.requests += 1;
    load.tokens += prompt_tokens;
    return rank;
}

void RankRouter::finish(std::int32_t rank, std::int64_t tokens) {
    RankLoad& load = loads_[static_cast<std::size_t>(rank)];
    load.requests -= 1;
    load.tokens -= tokens;
    MM_CHECK(load.requests >= 0 && load.tokens >= 0, "a request was finished twice", rank, load.requests, load.tokens);
}

}  // namespace megamoe::router
