// Which rank gets the next request. A pure decision over the work that this front end has handed out and not yet seen
// end.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace megamoe::router {

enum class BalanceMethod : std::uint8_t {
    kRoundRobin,     // next rank; the same placement in each run of a fixed request order
    kTotalRequests,  // fewest live requests
    kTotalTokens,    // fewest live tokens, then fewest requests
};

// Error kInvalidArgument: not one of round_robin, total_requests, total_tokens
[[nodiscard]] Result<BalanceMethod> parse_balance_method(std::string_view name);
std::string_view to_string(BalanceMethod method);

struct RankLoad {
    std::int64_t requests = 0;
    std::int64_t tokens = 0;  // prompt and generated, of live requests
};

// All requests pass through here, so the loads are exact at once: a burst spreads although no rank has reported
// anything. Ties go to the rank after the one chosen last, so that an idle engine is used evenly. Thread  one
class RankRouter {
  public:
    RankRouter(BalanceMethod method, std::int32_t num_ranks);

    // The rank for a request of `prompt_tokens`, whose load is counted from now until finish(). `wanted` wins over the
    // method. Error kInvalidArgument: `wanted` is not a rank; both bounds in the text
    [[nodiscard]] Result<std::int32_t> dispatch(std::int64_t prompt_tokens, std::optional<std::int32_t> wanted);

    // One more token of a request on `rank`.
    void grow(std::int32_t rank) { ++loads_[static_cast<std::size_t>(rank)].tokens; }

    // A request that was dispatched to `rank` ended with `tokens` counted, its prompt included.
    void finish(std::int32_t rank, std::int64_t tokens);

    BalanceMethod method() const { return method_; }
    const std::vector<RankLoad>& loads() const { return loads_; }

  private:
    std::int32_t pick() const;

    BalanceMethod method_;
    std::vector<RankLoad> loads_;
    std::int32_t next_ = 0;  // where the search starts
};

}  // namespace megamoe::router
