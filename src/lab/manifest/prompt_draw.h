// The two synthetic sources of prompts: random token ids, and stretches of a text file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "lab/manifest/exact_text.h"
#include "lab/manifest/generate_options.h"
#include "lab/manifest/token_source.h"

namespace megamoe::lab {

// Thread  draw: any, also at once
class PromptDraw {
  public:
    virtual ~PromptDraw() = default;

    // A prompt of exactly `num_tokens` tokens (without BOS), a pure function of (seed, index). With format ids the text
    // is "".
    // Error kFailedPrecondition: no exact text was found in eight draws
    [[nodiscard]] virtual Result<ExactText> draw(std::uint64_t index, std::size_t num_tokens) const = 0;
};

// `tokens` must outlive the result.
[[nodiscard]] Result<std::unique_ptr<PromptDraw>> make_prompt_draw(const GenerateOptions& options,
                                                                   const TokenSource& tokens);

}  // namespace megamoe::lab
