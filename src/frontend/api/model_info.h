// What the server says about its model, and the bounds that requests are checked against.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frontend/text/prompt_constants.h"

namespace megamoe::frontend {

struct ModelInfo {
    std::string served_name{};  // what /v1/models lists; the model path and its last part are accepted as well
    std::string model_path{};
    std::int32_t context_length = 0;  // prompt and answer together
    std::int32_t vocab_size = 0;      // ids from 0 on; the model's, not the tokenizer's
    std::int32_t num_ranks = 1;
    std::optional<text::PromptConstants>
        prompt_constants{};          // absent: the checkpoint has no effort levels and no tools
    std::string config_json = "{}";  // a JSON object for /server_info: the effective configuration
};

}  // namespace megamoe::frontend
