#include "frontend/text/detokenizer.h"

#include <utility>

namespace megamoe::text {

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

std::string Detokenizer::push(std::int32_t id) {
    std::string text;
    if (!(skip_special_ && tokenizer_->is_special(id))) {
        repair_.append(tokenizer_->token_bytes(id), text);
    }
    return text;
}

std::string Detokenizer::flush() {
    std::string text;
    repair_.finish(text);
    return text;
}

}  // namespace megamoe::text
