#include "engine/request.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace megamoe::engine {
namespace {

Error out_of_range(std::string_view field, double value, std::string_view range) {
    return invalid(fmt::format("{} is {}, must be {}", field, value, range));
}

bool within(float value, float low, float high) {  // false for NaN
    return value >= low && value <= high;
}

Result<Done> check_ids(const SamplingParams& params, std::int32_t vocab_size) {
    const auto outside = [vocab_size](std::int32_t id) { return id < 0 || id >= vocab_size; };
    const auto refuse = [vocab_size](std::string_view field, std::int32_t id) {
        return invalid(fmt::format("{} names token {}, the vocabulary has ids 0 to {}", field, id, vocab_size - 1));
    };
    for (const std::int32_t id : params.stop_token_ids) {
        if (outside(id)) {
            return refuse("stop_token_ids", id);
        }
    }
    for (const auto& [id, bias] : params.logit_bias) {
        if (outside(id)) {
            return refuse("logit_bias", id);
        }
        if (!within(bias, -100, 100)) {
            return out_of_range(fmt::format("logit_bias of token {}", id), bias, "from -100 to 100");
        }
    }
    return Done{};
}

}  // namespace

Result<Done> check_sampling(const SamplingParams& params, std::int32_t vocab_size) {
    if (!(params.temperature >= 0) || std::isinf(params.temperature)) {
        return out_of_range("temperature", params.temperature, "finite and at least 0");
    }
    if (!within(params.top_p, 0, 1) || params.top_p == 0) {
        return out_of_range("top_p", params.top_p, "above 0 and at most 1");
    }
    if (params.top_k != -1 && params.top_k < 1) {
        return out_of_range("top_k", params.top_k, "-1 or at least 1");
    }
    if (!within(params.min_p, 0, 1)) {
        return out_of_range("min_p", params.min_p, "from 0 to 1");
    }
    if (!within(params.repetition_penalty, 0, 2) || params.repetition_penalty == 0) {
        return out_of_range("repetition_penalty", params.repetition_penalty, "above 0 and at most 2");
    }
    if (!within(params.presence_penalty, -2, 2)) {
        return out_of_range("presence_penalty", params.presence_penalty, "from -2 to 2");
    }
    if (!within(params.frequency_penalty, -2, 2)) {
        return out_of_range("frequency_penalty", params.frequency_penalty, "from -2 to 2");
    }
    if (params.max_tokens < 1) {
        return out_of_range("max_tokens", params.max_tokens, "at least 1");
    }
    if (params.min_tokens < 0 || params.min_tokens > params.max_tokens) {
        return out_of_range("min_tokens", params.min_tokens,
                            fmt::format("from 0 to max_tokens ({})", params.max_tokens));
    }
    if (params.num_logprobs < -1 || params.num_logprobs > vocab_size) {
        return out_of_range("num_logprobs", params.num_logprobs, fmt::format("from -1 to {}", vocab_size));
    }
    return check_ids(params, vocab_size);
}

}  // namespace megamoe::engine
