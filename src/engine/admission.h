// How much of a rank's cache the next extend may take. Pure arithmetic over page counts and request lengths.
#pragma once

#include <cstdint>

#include "engine/live_request.h"
#include "kv/pools.h"

namespace megamoe::engine {

// What part of their remaining tokens running requests are expected to need. Starts low enough to fill the cache, sinks
// while decoding goes well and is corrected by every retraction.
// Spec  serving spec, 4.4
class NewTokenRatio {
  public:
    explicit NewTokenRatio(double conservativeness);
    double value() const { return value_; }
    void on_decode_step();
    // Of the requests that stay running.
    void on_retraction(std::int64_t num_requests, std::int64_t generated, std::int64_t max_tokens);
    void on_idle() { value_ = initial_; }

  private:
    double initial_, least_, decay_, value_;
};

// The budget of one extend pass. Requests are offered in order; what is granted is charged.
// Spec  serving spec, 4.2
class ExtendBudget {
  public:
    // `max_rows`: prefill rows of this rank in one step.
    ExtendBudget(const kv::Pools& pools, double new_token_ratio, std::int32_t max_rows);

    // A request in decode, which will need room for its further tokens.
    void reserve_running(const LiveRequest& request);

    // Rows for the next chunk of the partly prefilled request; 0 = it waits in this pass and keeps what it holds.
    std::int32_t grant_chunk(const LiveRequest& request);

    // Rows for a request that holds nothing yet; 0 = it has to wait, and so has everybody behind it. When `alone`, no
    // other request holds cache: then it gets what physically fits, whatever it may need later, and never 0.
    std::int32_t grant_new(const LiveRequest& request, bool alone);

    std::int32_t rows_left() const { return rows_left_; }

  private:
    double spare_tokens() const;
    std::int32_t rows_that_fit(const LiveRequest& request, std::int64_t token_pages) const;
    std::int64_t window_pages_in_decode(const LiveRequest& request) const;
    std::int32_t charge(const LiveRequest& request, std::int32_t rows);

    const kv::PoolLayout& layout_;
    const double new_token_ratio_;
    std::int32_t rows_left_;
    std::int64_t token_pages_left_;   // free and not granted
    std::int64_t window_pages_left_;  // likewise, and not needed by those in decode
    double tokens_expected_ = 0;      // that running and granted requests will still take
};

}  // namespace megamoe::engine
