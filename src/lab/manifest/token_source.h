// What making prompts needs from a tokenizer. The program implements it; replaying a finished manifest never needs one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace megamoe::lab {

struct TokenizerIdentity {
    std::string name;          // of the model folder
    std::string files_sha256;  // of the tokenizer's files
    std::uint32_t vocab = 0;
    bool adds_bos = false;  // the server puts one token before a text prompt, and counts it
};

// Thread  all calls: any, also at once
class TokenSource {
  public:
    virtual ~TokenSource() = default;

    virtual const TokenizerIdentity& identity() const = 0;
    // Special, added, control or unused: such an id is never drawn for a prompt.
    virtual bool is_special(std::uint32_t id) const = 0;
    // As the server encodes the prompt of a completion, without its BOS.
    virtual std::vector<std::uint32_t> encode(std::string_view text) const = 0;
    virtual std::string decode(std::span<const std::uint32_t> ids) const = 0;
};

// Loads the tokenizer of a model folder; called only when a manifest must be made.
using TokenSourceFactory = std::function<Result<std::unique_ptr<TokenSource>>(const std::string& model_path)>;

}  // namespace megamoe::lab
