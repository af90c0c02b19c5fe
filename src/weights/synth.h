// Random checkpoints of the released format (FP4 experts, FP8 dense, BF16/F32 rest), so that an engine can be run,
// timed and load-balanced at any size without real weights. Behind `megamoe model synth`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/model_geometry.h"

namespace megamoe::weights {

// A vocabulary is cut into this many equal ranges of token ids, its domains: text made of ids from one range looks to
// the router like text on one subject.
inline constexpr std::int32_t kSynthDomains = 4;

struct SynthOptions {
    ModelGeometry geometry;
    std::uint64_t seed = 0;
    // Expert popularity in each layer is log-normal with this sigma; 0 = all experts alike. About 1 is what trained
    // routers show. The hottest expert is capped at one selection a token.
    double router_skew_sigma = 0;
    // 0 = every domain prefers the same experts, 1 = their preferences are independent; the correlation of the domains'
    // log-popularities is 1 - drift^2. Hash layers do it by their tables, score layers by a direction that the
    // embeddings of a domain share. Without a skew there is no load to move, and drift does nothing.
    double router_drift = 0;
    // A shard ends before its tensors would grow past this; one file without an index if all of them fit.
    std::int64_t max_shard_bytes = 4'294'967'296;
};

// Writes config.json, generation_config.json, tokenizer.json and model.safetensors (or shards and their index) to
// `dir`, which is made if it does not exist. config.json comes last: a folder without it is unfinished. No MTP layers.
//
// Error kInvalidArgument: the geometry is not one that parse_model_geometry accepts, a size that FP4 cannot hold
//       (hidden and expert width must be multiples of 32), vocab_size below 512 or above 475518, sigma or drift out of
//       range, max_shard_bytes < 1. kFailedPrecondition: `dir` holds a checkpoint. kResourceExhausted: the disk is full
// Cost  a few blocks of rows in memory, whatever the model's size; about 20 ns a parameter
// Same  one seed and geometry give the same bytes on every machine; a tensor does not depend on how files are split
[[nodiscard]] Result<Done> write_synthetic_checkpoint(const SynthOptions& options, const std::string& dir);

struct SynthPreset {
    std::string_view name;
    std::string_view summary;
    ModelGeometry geometry;
};

// tiny, small, flash-slice.
std::span<const SynthPreset> synth_presets();

// Error kInvalidArgument: no preset of that name; the text lists the known ones
[[nodiscard]] Result<ModelGeometry> find_synth_preset(std::string_view name);

}  // namespace megamoe::weights
