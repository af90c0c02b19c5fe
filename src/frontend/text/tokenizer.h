// Byte-level BPE tokenizer of a checkpoint's `tokenizer.json`. It adds no BOS or EOS: the chat encoder writes those.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontend/text/byte_range.h"

namespace megamoe::text {

enum class AddedTokens : std::uint8_t {
    kMatch,   // a text such as "<think>" becomes its token, wherever it stands; as Hugging Face does
    kIgnore,  // it is ordinary text
};

// Thread  all const members may be called from any number of threads at once
class Tokenizer {
  public:
    // Reads a `tokenizer.json`.
    //
    // Error kNotFound: no such file; kInvalidArgument: not a byte-level BPE tokenizer, or one with a step that is not
    //       supported here (the text names it)
    // Spec  model spec, 6.1
    static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& path);
    // The same from memory; `name` stands for the file in error texts.
    static Result<std::shared_ptr<const Tokenizer>> parse(std::string_view json, const std::string& name);

    ~Tokenizer();
    Tokenizer(const Tokenizer&) = delete;
    Tokenizer& operator=(const Tokenizer&) = delete;

    // In    utf8  any bytes; what is not UTF-8 is read as U+FFFD
    // Cost  O(n log n) for any text
    // Same  equal to Hugging Face `tokenizers` with add_special_tokens=False
    std::vector<std::int32_t> encode(std::string_view utf8, AddedTokens added = AddedTokens::kMatch) const;

    // As kMatch, but an added token that touches one of `literal` is ordinary text, so it cannot act as markup.
    //
    // In    literal  ascending, not overlapping, inside `utf8`, none empty
    std::vector<std::int32_t> encode(std::string_view utf8, std::span<const ByteRange> literal) const;

    // Out   valid UTF-8; ids that name no token give nothing, bytes that are not UTF-8 become U+FFFD
    std::string decode(std::span<const std::int32_t> ids, bool skip_special) const;

    // Raw bytes of one token, not always whole characters; empty if `id` names none.
    // Owns  they live as long as the tokenizer
    std::string_view token_bytes(std::int32_t id) const;
    // The token with exactly these bytes (the inverse of token_bytes), an added token first.
    std::optional<std::int32_t> id_of(std::string_view bytes) const;

    // Highest id + 1. The model's own vocabulary may be larger.
    std::int32_t vocab_size() const;
    bool is_added(std::int32_t id) const;
    // Added with the `special` flag: what `skip_special` leaves out. In the V4 family BOS, EOS, pad and tokens not used
    // in text, but neither the roles nor <think>, </think> and ｜DSML｜.
    bool is_special(std::int32_t id) const;

  private:
    struct Impl;
    explicit Tokenizer(std::unique_ptr<const Impl> impl);

    std::unique_ptr<const Impl> impl_;
};

}  // namespace megamoe::text
