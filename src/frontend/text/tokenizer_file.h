// The content of a Hugging Face `tokenizer.json`, checked to be a byte-level BPE tokenizer we can run.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontend/text/added_tokens.h"
#include "frontend/text/bpe.h"
#include "frontend/text/splitter.h"

namespace megamoe::text {

struct TokenizerFile {
    std::vector<std::string> tokens;           // bytes by id, "" = no such id; without the added tokens' own
    std::array<std::int32_t, 256> byte_ids{};  // the token of each byte
    std::vector<MergeRule> merges;             // in order of rank
    std::vector<AddedToken> added;
    std::vector<SplitStep> split_steps;
};

// In    name  stands for the file in error texts
// Error kInvalidArgument: not JSON, a field is missing or has another type, ids disagree, or a component is not
//       supported (the text names it)
[[nodiscard]] Result<TokenizerFile> parse_tokenizer_file(std::string_view json, const std::string& name);

}  // namespace megamoe::text
