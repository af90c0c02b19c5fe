#include "engine/admission.h"

#include <algorithm>

namespace megamoe::engine {
namespace {

// Tokens that a request may still generate, as far as planning looks ahead.
std::int32_t expected_tokens(const LiveRequest& request) {
    constexpr std::int32_t kHorizon = 4096;
    return std::min(request.num_left(), kHorizon);
}

}  // namespace

NewTokenRatio::NewTokenRatio(double conservativeness)
    : initial_(std::min(0.7 * conservativeness, 1.0)),
      least_(initial_ * 0.14),
      decay_((initial_ - least_) / 600),
      value_(initial_) {}

void NewTokenRatio::on_decode_step() {
    value_ = std::max(value_ - decay_, least_);
}

void NewTokenRatio::on_retraction(std::int64_t num_requests, std::int64_t generated, std::int64_t max_tokens) {
    constexpr std::int64_t kStepsAhead = 20;
    value_ = std::min(
        1.0, static_cast<double>(generated + kStepsAhead * num_requests) / static_cast<double>(max_tokens + 1));
}

ExtendBudget::ExtendBudget(const kv::Pools& pools, double new_token_ratio, std::int32_t max_rows)
    : layout_(pools.layout()),
      new_token_ratio_(new_token_ratio),
      rows_left_(max_rows),
      token_pages_left_(pools.token_pages().num_free()),
      window_pages_left_(pools.window_pages().num_free()) {}

void ExtendBudget::reserve_running(const LiveRequest& request) {
    tokens_expected_ += expected_tokens(request) * new_token_ratio_;
    const std::int64_t held = request.sequence->window_table().num_owned();
    window_pages_left_ -= std::max<std::int64_t>(window_pages_in_decode(request) - held, 0);
}

std::int32_t ExtendBudget::grant_chunk(const LiveRequest& request) {
    const auto spare_pages = static_cast<std::int64_t>(std::max(spare_tokens(), 0.0)) / layout_.page_size;
    return charge(request, rows_that_fit(request, spare_pages));
}

std::int32_t ExtendBudget::grant_new(const LiveRequest& request, bool alone) {
    if (!alone) {
        if (request.num_pending() + expected_tokens(request) + layout_.page_size >= spare_tokens()) {
            return 0;
        }
        const std::int64_t pages = layout_.pages_of(std::min(request.num_pending(), rows_left_));
        if (std::max(pages, window_pages_in_decode(request)) > window_pages_left_) {
            return 0;  // a passing shortage: taking the room of those in decode would end in retractions
        }
    }
    return charge(request, rows_that_fit(request, token_pages_left_));
}

double ExtendBudget::spare_tokens() const {
    return static_cast<double>(token_pages_left_ * layout_.page_size) - tokens_expected_;
}

std::int32_t ExtendBudget::rows_that_fit(const LiveRequest& request, std::int64_t token_pages) const {
    const std::int64_t held = request.sequence ? request.sequence->token_table().size() : 0;
    const std::int64_t more = std::max<std::int64_t>(std::min(token_pages, window_pages_left_), 0);
    const std::int64_t room = (held + more) * layout_.page_size - request.num_committed();
    return static_cast<std::int32_t>(std::min<std::int64_t>({room, rows_left_, request.num_pending()}));
}

std::int64_t ExtendBudget::window_pages_in_decode(const LiveRequest& request) const {
    const std::int32_t most_tokens = request.num_prompt + request.sampling.max_tokens - 1;  // the last one is never fed
    return std::min(layout_.window_pages_of_one(), layout_.pages_of(most_tokens));
}

std::int32_t ExtendBudget::charge(const LiveRequest& request, std::int32_t rows) {
    if (rows == 0) {
        return 0;
    }
    const std::int64_t held = request.sequence ? request.sequence->token_table().size() : 0;
    const std::int64_t pages = layout_.pages_of(request.num_committed() + rows) - held;
    rows_left_ -= rows;
    token_pages_left_ -= pages;
    window_pages_left_ -= request.sequence ? pages : std::max(pages, window_pages_in_decode(request));
    tokens_expected_ += request.num_pending() - rows + expected_tokens(request) + layout_.page_size;
    return rows;
}

}  // namespace megamoe::engine
