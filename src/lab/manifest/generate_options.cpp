#include "lab/manifest/generate_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace megamoe::lab {
namespace {

using Json = nlohmann::ordered_json;

std::string_view to_string(RangeMode mode) {
    constexpr std::array<std::string_view, 3> kNames{"fixed", "lower", "sym"};
    return kNames[static_cast<std::size_t>(mode)];
}

std::string_view to_string(BosPolicy policy) {
    constexpr std::array<std::string_view, 3> kNames{"auto", "none", "counted"};
    return kNames[static_cast<std::size_t>(policy)];
}

Json args_json(const GenerateOptions& options) {
    return {{"dataset-name", options.dataset},
            {"dataset-path", options.dataset_path},
            {"seed", options.seed},
            {"num-prompts", options.num_prompts},
            {"warmup-requests", options.warmup_requests},
            {"input-len", options.input_len},
            {"output-len", options.output_len ? Json(*options.output_len) : Json(nullptr)},
            {"range-mode", to_string(options.range_mode)},
            {"random-range-ratio", options.range_ratio},
            {"prefix-len", options.prefix_len},
            {"prompt-format", to_string(options.prompt_format)},
            {"token-weights", options.zipf_alpha > 0 ? fmt::format("zipf:{}", options.zipf_alpha) : "uniform"},
            {"dataset-offset", options.dataset_offset},
            {"skip-min-tokens", options.skip_min_tokens},
            {"max-context", options.max_context},
            {"bos-policy", to_string(options.bos_policy)},
            {"temperature", options.sampling.temperature},
            {"top-p", options.sampling.top_p},
            {"top-k", options.sampling.top_k},
            {"ignore-eos", options.sampling.ignore_eos}};
}

bool needs_file(const GenerateOptions& options) {
    return options.dataset != "random";
}

}  // namespace

std::string to_json(const GenerateOptions& options) {
    return args_json(options).dump();
}

std::vector<ArgDifference> differing_args(const GenerateOptions& asked, std::span<const std::string> given,
                                          const std::string& manifest_args_json) {
    const Json mine = args_json(asked);
    const Json theirs = Json::parse(manifest_args_json, nullptr, /*allow_exceptions=*/false);
    std::vector<ArgDifference> differences;
    for (const std::string& flag : given) {
        if (!mine.contains(flag) || flag == "num-prompts" || flag == "warmup-requests") {
            continue;
        }
        const Json made_with = theirs.is_object() && theirs.contains(flag) ? theirs[flag] : Json(nullptr);
        if (made_with != mine[flag]) {
            differences.push_back({flag, made_with.dump(), mine[flag].dump()});
        }
    }
    return differences;
}

LengthRange length_range(std::uint32_t length, double ratio, RangeMode mode) {
    const double len = length;
    const auto whole = [](double x) { return static_cast<std::uint32_t>(std::max(x, 1.0)); };
    switch (mode) {
        case RangeMode::kLower:
            return {whole(std::floor(len * ratio)), length};
        case RangeMode::kSymmetric:
            return {whole(std::floor(len * (1 - ratio))), whole(std::ceil(len * (1 + ratio)))};
        case RangeMode::kFixed:
            break;
    }
    return {length, length};
}

Result<Done> check(const GenerateOptions& options) {
    constexpr std::array<std::string_view, 4> kDatasets{"random", "random-text", "sharegpt", "custom"};
    if (std::find(kDatasets.begin(), kDatasets.end(), options.dataset) == kDatasets.end()) {
        return invalid("--dataset-name " + options.dataset + " is not known",
                       "use random, random-text, sharegpt or custom");
    }
    if (needs_file(options) && options.dataset_path.empty()) {
        return invalid("--dataset-name " + options.dataset + " needs a file", "name it with --dataset-path");
    }
    if (options.num_prompts < 1) {
        return invalid(fmt::format("--num-prompts {} is below 1", options.num_prompts));
    }
    if (options.warmup_requests < 0) {
        return invalid(fmt::format("--warmup-requests {} is negative", options.warmup_requests));
    }
    if (options.input_len < 2 || options.output_len == 0) {
        return invalid(fmt::format("--input-len {} / --output-len {}: at least 2 and 1 tokens are needed",
                                   options.input_len, options.output_len.value_or(1024)));
    }
    const bool ratio_ok = options.range_mode == RangeMode::kSymmetric
                              ? options.range_ratio >= 0 && options.range_ratio < 1
                              : options.range_ratio >= 0 && options.range_ratio <= 1;
    if (!ratio_ok) {
        return invalid(fmt::format("--random-range-ratio {} is outside what --range-mode {} allows",
                                   options.range_ratio, to_string(options.range_mode)),
                       "lower: 0 to 1; sym: 0 to below 1");
    }
    return Done{};
}

}  // namespace megamoe::lab
