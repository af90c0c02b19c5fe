// The request dialects the client speaks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace megamoe::lab {

enum class Backend : std::uint8_t {
    kOpenai,      // POST /v1/completions
    kOpenaiChat,  // POST /v1/chat/completions
    kSglang,      // POST /generate
};

// Accepts the names other tools use: openai, vllm, sglang-oai; openai-chat, vllm-chat, sglang-oai-chat; sglang.
[[nodiscard]] Result<Backend> backend_of(const std::string& name);
std::string_view to_string(Backend backend);
std::string_view default_endpoint(Backend backend);

}  // namespace megamoe::lab
