#include "lab/client/backend.h"

#include <array>
#include <cstddef>
#include <utility>

namespace megamoe::lab {

Result<Backend> backend_of(const std::string& name) {
    constexpr std::array<std::pair<std::string_view, Backend>, 7> kNames{{{"openai", Backend::kOpenai},
                                                                          {"vllm", Backend::kOpenai},
                                                                          {"sglang-oai", Backend::kOpenai},
                                                                          {"openai-chat", Backend::kOpenaiChat},
                                                                          {"vllm-chat", Backend::kOpenaiChat},
                                                                          {"sglang-oai-chat", Backend::kOpenaiChat},
                                                                          {"sglang", Backend::kSglang}}};
    for (const auto& [known, backend] : kNames) {
        if (name == known) {
            return backend;
        }
    }
    return invalid("--backend " + name + " is not known", "use openai, openai-chat or sglang");
}

std::string_view to_string(Backend backend) {
    constexpr std::array<std::string_view, 3> kNames{"openai", "openai-chat", "sglang"};
    return kNames[static_cast<std::size_t>(backend)];
}

std::string_view default_endpoint(Backend backend) {
    constexpr std::array<std::string_view, 3> kPaths{"/v1/completions", "/v1/chat/completions", "/generate"};
    return kPaths[static_cast<std::size_t>(backend)];
}

}  // namespace megamoe::lab
