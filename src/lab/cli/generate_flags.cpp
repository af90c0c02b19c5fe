#include "lab/cli/generate_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace megamoe::lab {
namespace {

bool has(const std::vector<std::string>& given, const char* name) {
    return std::find(given.begin(), given.end(), name) != given.end();
}

Result<double> zipf_alpha(const std::string& weights) {
    if (weights == "uniform") {
        return 0.0;
    }
    double alpha = 0;
    if (weights.starts_with("zipf:")) {
        const char* begin = weights.data() + 5;
        const auto [end, error] = std::from_chars(begin, weights.data() + weights.size(), alpha);
        if (error == std::errc() && end == weights.data() + weights.size() && alpha > 0 && std::isfinite(alpha)) {
            return alpha;
        }
    }
    return invalid("--token-weights " + weights, "use uniform or zipf:ALPHA with ALPHA above 0");
}

std::string range_text(std::uint32_t length, double ratio, RangeMode mode) {
    const LengthRange range = length_range(length, ratio, mode);
    return fmt::format("{} to {}", range.low, range.high);
}

}  // namespace

GenerateFlags::GenerateFlags(CLI::App& app, GenerateOptions& options) : options_(options) {
    app.add_option("--dataset-name,--prompt-source", options.dataset, "random, random-text, sharegpt or custom")
        ->group("Data");
    app.add_option("--dataset-path", options.dataset_path, "local file of the data set")->group("Data");
    app.add_option("--input-len,--random-input-len", options.input_len, "prompt tokens")->group("Data");
    app.add_option("--output-len,--random-output-len,--sharegpt-output-len", output_len_, "tokens to generate")
        ->group("Data");
    app.add_option("--random-range-ratio", options.range_ratio, "R of --range-mode")->group("Data");
    app.add_option("--range-mode", range_mode_, "lower: R*L to L (SGLang); sym: L*(1-R) to L*(1+R) (vLLM)")
        ->group("Data");
    app.add_option("--prefix-len,--random-prefix-len", options.prefix_len, "tokens of a prefix common to all prompts")
        ->group("Data");
    app.add_option("--prompt-format", prompt_format_, "text or ids")->group("Data");
    app.add_option("--token-weights", token_weights_, "uniform or zipf:ALPHA")->group("Data");
    app.add_option("--dataset-offset", options.dataset_offset, "records of the file to skip")->group("Data");
    app.add_option("--skip-min-tokens", options.skip_min_tokens, "drop shorter records")->group("Data");
    app.add_option("--max-context", options.max_context, "drop records with more tokens in all")->group("Data");
    app.add_option("--bos-policy", bos_policy_, "whether the server adds a token to text prompts: auto, none, counted")
        ->group("Data");
    app.add_option("--seed", options.seed, "master seed")->group("Data");
    app.add_option("--num-prompts", options.num_prompts, "measured requests")->group("Load");
    app.add_option("--warmup-requests,--num-warmups", options.warmup_requests, "warm-up requests")->group("Load");

    app.add_option("--temperature", options.sampling.temperature, "always sent")->group("Sampling");
    app.add_option("--top-p", options.sampling.top_p, "always sent")->group("Sampling");
    app.add_option("--top-k", options.sampling.top_k, "always sent; -1 = all")->group("Sampling");
    app.add_flag("--ignore-eos", ignore_eos_, "go on behind an end token (default for synthetic lengths)")
        ->group("Sampling");
    app.add_flag("--no-ignore-eos,--disable-ignore-eos", no_ignore_eos_, "let the model end early")->group("Sampling");
}

Result<Done> GenerateFlags::finish(const std::vector<std::string>& given) {
    GenerateOptions& o = options_;
    const std::vector<std::pair<std::string, std::string>> kSynonyms{{"random-ids", "random"}, {"synthetic", "random"}};
    for (const auto& [other, ours] : kSynonyms) {
        o.dataset = o.dataset == other ? ours : o.dataset;
    }
    if (has(given, "output-len")) {
        o.output_len = output_len_;
    }
    if (prompt_format_ != "text" && prompt_format_ != "ids") {
        return invalid("--prompt-format " + prompt_format_, "use text or ids");
    }
    o.prompt_format = prompt_format_ == "ids" ? PromptFormat::kIds : PromptFormat::kText;
    if (range_mode_ != "none" && range_mode_ != "lower" && range_mode_ != "sym") {
        return invalid("--range-mode " + range_mode_, "use lower or sym");
    }
    if (has(given, "random-range-ratio") && range_mode_ == "none") {
        return invalid(
            fmt::format("--random-range-ratio {} needs --range-mode, since tools disagree: lower means inputs of {} "
                        "tokens, sym means {}",
                        o.range_ratio, range_text(o.input_len, o.range_ratio, RangeMode::kLower),
                        range_text(o.input_len, std::min(o.range_ratio, 1.0), RangeMode::kSymmetric)),
            "add --range-mode lower or --range-mode sym");
    }
    o.range_mode = range_mode_ == "lower" ? RangeMode::kLower
                   : range_mode_ == "sym" ? RangeMode::kSymmetric
                                          : RangeMode::kFixed;
    MM_TRY(o.zipf_alpha, zipf_alpha(token_weights_));
    if (bos_policy_ != "auto" && bos_policy_ != "none" && bos_policy_ != "counted") {
        return invalid("--bos-policy " + bos_policy_, "use auto, none or counted");
    }
    o.bos_policy = bos_policy_ == "none"      ? BosPolicy::kNone
                   : bos_policy_ == "counted" ? BosPolicy::kCounted
                                              : BosPolicy::kFromTokenizer;
    if (ignore_eos_ && no_ignore_eos_) {
        return invalid("--ignore-eos and --no-ignore-eos contradict each other");
    }
    const bool recorded = o.dataset == "sharegpt" || o.dataset == "custom";
    o.sampling.ignore_eos = ignore_eos_ || (!no_ignore_eos_ && !(recorded && !o.output_len));
    return check(o);
}

const Unsupported& GenerateFlags::unsupported() {
    constexpr std::string_view kLater =
        "this kind of data set is not built in; write its rows as JSON lines and use "
        "--dataset-name custom";
    static const Unsupported kList{{"--gsp-num-groups", kLater},
                                   {"--gsp-prompts-per-group", kLater},
                                   {"--gsp-system-prompt-len", kLater},
                                   {"--gsp-question-len", kLater},
                                   {"--gsp-output-len", kLater},
                                   {"--trace-slowdown", kLater},
                                   {"--trace-start-s", kLater},
                                   {"--trace-duration-s", kLater},
                                   {"--apply-chat-template", "apply the template when the data set is written"}};
    return kList;
}

}  // namespace megamoe::lab
