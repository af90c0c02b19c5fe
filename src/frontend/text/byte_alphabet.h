// The byte-level alphabet of GPT-2: `tokenizer.json` spells each byte as one printable character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megamoe::text {

// The character, in UTF-8, that stands for `byte`.
std::string spell_byte(std::uint8_t byte);

// The bytes that a token's spelling stands for. A spelling with any character outside the alphabet (most added tokens)
// stands for itself, as in Hugging Face's ByteLevel decoder.
std::string unspell(std::string_view spelling);

}  // namespace megamoe::text
