#include "frontend/api/sampling_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace megamoe::api {
namespace {

using nlohmann::json;

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxStops = 64;
constexpr std::size_t kMaxStopBytes = 1024;
constexpr std::size_t kMaxBiases = 1024;
constexpr std::int64_t kMaxChoices = 128;

void read_stops(Fields& fields, std::vector<std::string>& stops) {
    const json* const value = fields.find("stop");
    if (value == nullptr) {
        return;
    }
    const auto add = [&](std::string_view where, const json& item) {
        if (!item.is_string()) {
            fields.fail_at(where, item, "expected a string");
            return;
        }
        const auto& stop = item.get_ref<const std::string&>();
        if (stop.empty() || stop.size() > kMaxStopBytes) {
            fields.fail_at(where, item, fmt::format("must have 1 to {} bytes", kMaxStopBytes));
            return;
        }
        stops.push_back(stop);
    };
    if (!value->is_array()) {
        add("stop", *value);
        return;
    }
    if (value->size() > kMaxStops) {
        fields.fail("stop", fmt::format("must have at most {} strings", kMaxStops));
        return;
    }
    for (std::size_t i = 0; i < value->size(); ++i) {
        add(fmt::format("stop[{}]", i), (*value)[i]);
    }
}

void read_logit_bias(Fields& fields, std::int32_t vocab_size, std::vector<std::pair<std::int32_t, float>>& biases) {
    const json* const value = fields.find("logit_bias");
    if (value == nullptr) {
        return;
    }
    if (!value->is_object() || value->size() > kMaxBiases) {
        fields.fail("logit_bias", fmt::format("expected an object of at most {} token ids", kMaxBiases));
        return;
    }
    for (const auto& [key, bias] : value->items()) {
        std::int32_t id = -1;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
        const bool is_id = error == std::errc() && end == key.data() + key.size() && id >= 0 && id < vocab_size;
        const std::string where = fmt::format("logit_bias[{}]", describe(key));
        if (!is_id) {
            fields.fail_at(where, bias, fmt::format("but its key must be a token id in [0, {}]", vocab_size - 1));
            return;
        }
        if (!bias.is_number() || bias.get<double>() < -100 || bias.get<double>() > 100) {
            fields.fail_at(where, bias, "must be a number in [-100, 100]");
            return;
        }
        biases.emplace_back(id, bias.get<float>());
    }
}

void read_lengths(Fields& fields, const FieldNames& names, GenerationOptions& options) {
    if (const auto value = fields.integer(names.max_tokens, 1, kMaxInt32)) {
        options.max_tokens = static_cast<std::int32_t>(*value);
    }
    if (const auto value = fields.integer(names.min_tokens, 0, kMaxInt32)) {
        options.sampling.min_tokens = static_cast<std::int32_t>(*value);
    }
    if (options.max_tokens && options.sampling.min_tokens > *options.max_tokens) {
        fields.fail(names.min_tokens, fmt::format("must not exceed {} = {}", names.max_tokens, *options.max_tokens));
    }
}

void read_seed(Fields& fields, std::string_view name, std::optional<std::uint64_t>& seed) {
    const json* const value = fields.find(name);
    if (value != nullptr && value->is_number_unsigned()) {
        seed = value->get<std::uint64_t>();
    } else if (const auto number = fields.integer(name, std::numeric_limits<std::int64_t>::min(),
                                                  std::numeric_limits<std::int64_t>::max())) {
        seed = static_cast<std::uint64_t>(*number);
    }
}

}  // namespace

void read_sampling(Fields& fields, const FieldNames& names, const Bounds& bounds, GenerationOptions& options) {
    engine::SamplingParams& sampling = options.sampling;
    const auto real = [&](std::string_view name, Interval interval, float& target) {
        if (const auto value = fields.number(name, interval)) {
            target = static_cast<float>(*value);
        }
    };
    real("temperature", {0, 100}, sampling.temperature);
    real("top_p", {0, 1, true}, sampling.top_p);
    real("min_p", {0, 1}, sampling.min_p);
    real("repetition_penalty", {0, 2, true}, sampling.repetition_penalty);
    real("presence_penalty", {-2, 2}, sampling.presence_penalty);
    real("frequency_penalty", {-2, 2}, sampling.frequency_penalty);
    if (const auto value = fields.integer("top_k", -1, kMaxInt32)) {
        sampling.top_k = *value == 0 ? -1 : static_cast<std::int32_t>(*value);  // vLLM's word for "all" is 0
    }
    read_seed(fields, names.seed, sampling.seed);
    read_lengths(fields, names, options);
    sampling.ignore_eos = fields.flag("ignore_eos").value_or(false);
    if (auto ids = fields.ids("stop_token_ids", bounds.vocab_size)) {
        sampling.stop_token_ids = std::move(*ids);
    }
    read_stops(fields, options.stop);
    read_logit_bias(fields, bounds.vocab_size, sampling.logit_bias);
    options.keep_stop =
        fields.flag("no_stop_trim").value_or(false) || fields.flag("include_stop_str_in_output").value_or(false);
    options.skip_special = fields.flag("skip_special_tokens").value_or(true);
    options.n = static_cast<std::int32_t>(fields.integer("n", 1, kMaxChoices).value_or(1));
    const auto best_of = fields.integer("best_of", 1, kMaxChoices);
    if (best_of && *best_of != options.n) {
        fields.fail("best_of", fmt::format("which is not supported beyond n = {}; leave it out", options.n));
    }
}

void read_delivery(Fields& fields, const Bounds& bounds, GenerationOptions& options) {
    options.stream = fields.flag("stream").value_or(false);
    for (const std::string_view name : {"routed_dp_rank", "data_parallel_rank"}) {
        if (const auto rank = fields.integer(name, 0, bounds.num_ranks - 1)) {
            options.routed_rank = static_cast<std::int32_t>(*rank);
        }
    }
    options.rid = fields.text("rid", kMaxNameBytes).value_or("");
}

void read_stream_options(Fields& fields, GenerationOptions& options) {
    auto part = fields.object("stream_options");
    if (!part) {
        return;
    }
    if (!options.stream) {
        fields.fail("stream_options", "which needs stream = true");
        return;
    }
    options.include_usage = part->flag("include_usage").value_or(false);
    options.continuous_usage = part->flag("continuous_usage_stats").value_or(false);
    fields.take_error(*part);
}

}  // namespace megamoe::api
