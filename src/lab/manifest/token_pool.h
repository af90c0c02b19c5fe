// The token ids that random prompts are drawn from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "lab/core/rng.h"
#include "lab/manifest/manifest.h"
#include "lab/manifest/token_source.h"

namespace megamoe::lab {

class TokenPool {
  public:
    // Takes every id that is not special, that decodes to valid UTF-8 alone, and, for text prompts, that survives
    // decode and encode.
    // In    zipf_alpha  0: all ids equally likely; else weight 1/k^alpha, k = position of the id in a fixed order
    // Error kFailedPrecondition: the tokenizer leaves fewer than 16 such ids
    // Cost  one decode and encode an id of the vocabulary
    [[nodiscard]] static Result<TokenPool> make(const TokenSource& tokens, PromptFormat format, double zipf_alpha);

    std::uint32_t draw(Rng& rng) const;
    std::size_t size() const { return ids_.size(); }

  private:
    std::vector<std::uint32_t> ids_;
    std::vector<double> cumulative_;  // weights; empty: uniform
};

// Whether `bytes` are well-formed UTF-8, without the replacement character that decoders put for broken bytes.
bool is_clean_utf8(std::string_view bytes);

}  // namespace megamoe::lab
