// Turns the token stream of one answer into text, piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "frontend/text/tokenizer.h"
#include "frontend/text/utf8.h"

namespace megamoe::text {

// All pieces together are Tokenizer::decode of all ids, wherever the stream is cut.
// Thread  one stream, one thread at a time
class Detokenizer {
  public:
    Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special);

    // The text that `id` completes: whole characters only, so it may be empty.
    std::string push(std::int32_t id);
    // What is left at the end: U+FFFD for a character that never got complete, else nothing.
    std::string flush();

  private:
    std::shared_ptr<const Tokenizer> tokenizer_;
    bool skip_special_;
    Utf8Repair repair_;
};

}  // namespace megamoe::text
