// What a manifest is generated from: the flags of `bench manifest make`, and of `bench serve` when it has to make one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/manifest/manifest.h"

namespace megamoe::lab {

enum class RangeMode : std::uint8_t {
    kFixed,
    kLower,      // uniform in [max(1, floor(R*L)), L], as SGLang means it
    kSymmetric,  // uniform in [floor(L*(1-R)), ceil(L*(1+R))], as vLLM means it
};

enum class BosPolicy : std::uint8_t { kFromTokenizer, kNone, kCounted };

struct GenerateOptions {
    std::string dataset = "random";  // random, random-text, sharegpt, custom
    std::string dataset_path;
    std::uint64_t seed = 42;
    std::int64_t num_prompts = 1000;
    std::int64_t warmup_requests = 0;
    std::uint32_t input_len = 1024;           // tokens
    std::optional<std::uint32_t> output_len;  // tokens; unset: 1024, or the length of the recorded answer
    RangeMode range_mode = RangeMode::kFixed;
    double range_ratio = 0;
    std::uint32_t prefix_len = 0;  // tokens, the same before every prompt
    PromptFormat prompt_format = PromptFormat::kText;
    double zipf_alpha = 0;              // 0: all ids equally likely
    std::int64_t dataset_offset = 0;    // records of the file to skip
    std::uint32_t skip_min_tokens = 4;  // drop records with fewer tokens on either side
    std::uint32_t max_context = 0;      // drop records with more tokens in all; 0: no limit
    BosPolicy bos_policy = BosPolicy::kFromTokenizer;
    Sampling sampling;
};

// The options as one JSON object, keyed by flag name: what a manifest's header keeps.
std::string to_json(const GenerateOptions& options);

// A generation flag that says something else than the manifest was made with.
struct ArgDifference {
    std::string flag;  // "input-len"
    std::string in_manifest;
    std::string asked;
};

// In    given  names of the flags that the user wrote; only these are compared. The two counts have rules of their own
//              (a manifest may be used in part) and are left out.
// Spec  bench.md 3.3, --prompt-manifest
std::vector<ArgDifference> differing_args(const GenerateOptions& asked, std::span<const std::string> given,
                                          const std::string& manifest_args_json);

// The lengths that (length, ratio, mode) allow.
struct LengthRange {
    std::uint32_t low = 0;
    std::uint32_t high = 0;

    friend bool operator==(const LengthRange&, const LengthRange&) = default;
};
LengthRange length_range(std::uint32_t length, double ratio, RangeMode mode);

// Error kInvalidArgument: what no manifest can be made from, each with its reason
[[nodiscard]] Result<Done> check(const GenerateOptions& options);

}  // namespace megamoe::lab
