#include "kv/pool_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace megamoe::kv {
namespace {

// Page counts include page 0.
struct Bounds {
    std::int64_t most_token = 0;   // more can never be owned
    std::int64_t most_window = 0;  // likewise
    std::int64_t least = 0;        // of either group: with fewer, even a lone request could not move on
};

Bounds bounds_of(const PoolLayout& layout, const PoolDemand& demand) {
    const std::int64_t context = layout.pages_of(demand.context_length);
    const std::int64_t one_window = layout.window_pages_of_one();
    const std::int64_t chunk = layout.pages_of(demand.chunk_tokens);
    Bounds bounds;
    bounds.most_token =
        std::min<std::int64_t>(demand.max_running * context + 1, std::numeric_limits<std::int32_t>::max());
    bounds.most_window = std::min(demand.max_running * one_window + chunk + 1, bounds.most_token);
    bounds.least = std::min(context, one_window) + 1;
    return bounds;
}

std::int64_t window_pages(const Bounds& bounds, std::int64_t token_pages) {
    return std::min(bounds.most_window, token_pages);
}

std::int64_t pages_in_budget(const PoolLayout& layout, const Bounds& bounds, std::int64_t bytes) {
    const std::int64_t token = layout.token_page_bytes;
    const std::int64_t together = token + layout.window_page_bytes;
    if (bytes < bounds.most_window * together) {
        return bytes / std::max<std::int64_t>(together, 1);  // as many window pages as token pages
    }
    // Token pages of a model without compressed layers are empty: they only count.
    const std::int64_t rest = bytes - bounds.most_window * layout.window_page_bytes;
    return token == 0 ? bounds.most_token : std::min(rest / token, bounds.most_token);
}

}  // namespace

Result<PoolPlan> plan_pools(const PoolLayout& layout, const PoolDemand& demand) {
    const Bounds bounds = bounds_of(layout, demand);
    PoolPlan plan;
    plan.state_bytes = (demand.max_running + 1) * layout.state_slot_bytes();
    std::int64_t token_pages = 0;
    if (demand.max_total_tokens > 0) {
        const std::int64_t wanted = (demand.max_total_tokens + layout.page_size - 1) / layout.page_size + 1;
        token_pages = std::min(wanted, bounds.most_token);
    } else {
        token_pages =
            std::min(pages_in_budget(layout, bounds, demand.budget_bytes - plan.state_bytes), bounds.most_token);
    }
    if (token_pages < bounds.least) {
        const std::int64_t needed = plan.state_bytes + bounds.least * layout.token_page_bytes +
                                    window_pages(bounds, bounds.least) * layout.window_page_bytes;
        return Error{
            Errc::kResourceExhausted,
            fmt::format("the cache of a rank needs at least {} bytes ({} pages of {} tokens, {} state slots), but "
                        "gets {}",
                        needed, bounds.least, layout.page_size, demand.max_running + 1,
                        demand.max_total_tokens > 0 ? fmt::format("{} tokens", demand.max_total_tokens)
                                                    : fmt::format("{} bytes", demand.budget_bytes)),
            "lower max_running_requests or page_size, or give the cache more memory"};
    }
    plan.sizes = {.token_pages = static_cast<std::int32_t>(token_pages),
                  .window_pages = static_cast<std::int32_t>(window_pages(bounds, token_pages)),
                  .state_slots = demand.max_running + 1};
    plan.token_bytes = token_pages * layout.token_page_bytes;
    plan.window_bytes = plan.sizes.window_pages * layout.window_page_bytes;
    plan.token_capacity = (token_pages - 1) * layout.page_size;
    return plan;
}

}  // namespace megamoe::kv
