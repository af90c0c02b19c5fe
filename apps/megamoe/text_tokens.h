// The tokenizer of a checkpoint, as the laboratory wants to see one.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "lab/manifest/token_source.h"

namespace megamoe::apps {

// In    model_path  a folder with tokenizer.json
// Error kNotFound: there is none; kInvalidArgument: of a kind that is not supported
[[nodiscard]] Result<std::unique_ptr<lab::TokenSource>> load_text_tokens(const std::string& model_path);

}  // namespace megamoe::apps
