// Prompts that were recorded somewhere: ShareGPT conversations, and JSON lines of the user's own.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "lab/manifest/generate_options.h"
#include "lab/manifest/manifest.h"
#include "lab/manifest/token_source.h"

namespace megamoe::lab {

// The first `limit` usable records of options.dataset_path; role, i and id are the caller's to fill.
//
// sharegpt  JSON array of {"conversations":[{"value":...},...]}: turn 0 is the prompt, turn 1 gives the output length
// custom    JSON lines of {"prompt" or "prompt_ids", "output_len"?, "at_ms"?, "session"?, "turn"?, "params"?}
// Error kInvalidArgument: the file cannot be read or a record is malformed (its number is named)
// Spec  bench.md 4.4
[[nodiscard]] Result<std::vector<Row>> read_recorded_prompts(const GenerateOptions& options, const TokenSource& tokens,
                                                             bool counts_bos, std::size_t limit);

}  // namespace megamoe::lab
