// Flags that users of SGLang and vLLM know and this program has no setting for. Each row is honest about what holds
// here.
#include <vector>

#include "config/serve_flags.h"

namespace megamoe {
namespace {

const std::string kNoEffect = "CFG-45";
const std::string kOtherMeaning = "CFG-44";
const std::string kNoEplb = "expert load balancing is not part of this version";

ForeignFlag holds_anyway(std::string name, bool takes_value, std::vector<std::string> accepted, std::string reason,
                         std::string fix = "leave it out") {
    return {std::move(name), takes_value, std::move(accepted), std::move(reason), std::move(fix), kNoEffect};
}

ForeignFlag refused(std::string name, bool takes_value, std::string reason, std::string fix,
                    std::string id = kOtherMeaning) {
    return {std::move(name), takes_value, {}, std::move(reason), std::move(fix), std::move(id)};
}

std::vector<ForeignFlag> make_flags() {
    return {
        holds_anyway("trust-remote-code", false, {"*"},
                     "a checkpoint's code is never run, only its tensors and JSON are read"),
        holds_anyway("disable-radix-cache", false, {"*"}, "there is no prefix cache: every prompt is computed in full"),
        holds_anyway("disable-shared-experts-fusion", false, {"*"}, "the shared expert is always computed apart"),
        holds_anyway("enable-dp-lm-head", false, {"*"}, "each rank always computes the logits of its own requests"),
        holds_anyway("moe-dense-tp-size", true, {"1"}, "dense layers are whole on each rank, which is size 1"),
        holds_anyway("attention-backend", true, {"dsv4"}, "there is one attention, the DeepSeek-V4 one"),
        holds_anyway("tool-call-parser", true, {"deepseekv4"}, "requests that bring tools are refused in this version"),
        holds_anyway("reasoning-parser", true, {"deepseek-v4"}, "reasoning is always told from content in the V4 way"),
        holds_anyway("cuda-graph-max-bs", true, {"*"}, "on CPUs nothing is captured into graphs"),
        holds_anyway("disable-cuda-graph", false, {"*"}, "on CPUs nothing is captured into graphs"),
        holds_anyway("swa-full-tokens-ratio", true, {"*"},
                     "the window group is sized for what the running requests can need at most"),

        refused("enforce-shared-experts-fusion", false,
                "a fused shared expert makes the router's top-k one wider than the operator is built for",
                "leave it out", "CFG-02"),
        refused("enable-mixed-chunk", false,
                "a step is all prefill or all decode, so that every rank agrees on its phase", "leave it out",
                "CFG-22"),
        refused("enable-eplb", false, kNoEplb, "leave it out"),
        refused("eplb-rebalance-num-iterations", true, kNoEplb, "leave it out"),
        refused("expert-distribution-recorder-mode", true, kNoEplb, "leave it out"),
        refused("ep-num-redundant-experts", true, kNoEplb, "leave it out"),
        refused("gpu-memory-utilization", true, "vLLM's share is of all memory, weights included",
                "use --mem-fraction-static, the share of what is free after loading"),
        refused("max-num-seqs", true, "vLLM counts it a rank",
                "use --max-running-requests, which counts all ranks together"),
        refused("max-num-batched-tokens", true, "vLLM counts it a rank",
                "use --chunked-prefill-size, which counts all ranks together"),
        refused("max-model-len", true, "this program follows SGLang's word", "use --context-length"),
        refused("block-size", true, "this program follows SGLang's word", "use --page-size"),
        refused("enable-expert-parallel", false, "vLLM derives the expert ranks from the other two sizes",
                "use --ep-size N"),
    };
}

}  // namespace

std::span<const ForeignFlag> foreign_flags() {
    static const std::vector<ForeignFlag> flags = make_flags();
    return flags;
}

}  // namespace megamoe
