// A tokenizer.json for synthetic models: byte-level BPE with the family's pre-tokeniser and chat tokens.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace megamoe::weights {

// Every id below `vocab_size` decodes: 0, 1, 2 are BOS, EOS and pad; 256 byte tokens follow; the last five ids are the
// chat tokens; the ids between are merges of lower-case letters (pairs, a space before a letter, three and four
// letters), common letters first, so that plain text takes fewer tokens than bytes.
//
// Error kInvalidArgument: vocab_size is below 512, or above what these merges can fill (475518)
[[nodiscard]] Result<std::string> synth_tokenizer_json(std::int32_t vocab_size);

}  // namespace megamoe::weights
