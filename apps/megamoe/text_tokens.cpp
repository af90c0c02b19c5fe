#include "text_tokens.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "frontend/text/tokenizer.h"
#include "lab/core/sha256.h"

namespace megamoe::apps {
namespace {

class TextTokens final : public lab::TokenSource {
  public:
    TextTokens(std::shared_ptr<const text::Tokenizer> tokenizer, lab::TokenizerIdentity identity)
        : tokenizer_(std::move(tokenizer)), identity_(std::move(identity)) {}

    const lab::TokenizerIdentity& identity() const override { return identity_; }

    bool is_special(std::uint32_t id) const override {
        const auto signed_id = static_cast<std::int32_t>(id);
        return tokenizer_->is_added(signed_id) || tokenizer_->token_bytes(signed_id).empty();
    }

    std::vector<std::uint32_t> encode(std::string_view utf8) const override {
        const std::vector<std::int32_t> ids = tokenizer_->encode(utf8);
        return {ids.begin(), ids.end()};
    }

    std::string decode(std::span<const std::uint32_t> ids) const override {
        const std::vector<std::int32_t> signed_ids(ids.begin(), ids.end());
        return tokenizer_->decode(signed_ids, /*skip_special=*/false);
    }

  private:
    std::shared_ptr<const text::Tokenizer> tokenizer_;
    lab::TokenizerIdentity identity_;
};

}  // namespace

Result<std::unique_ptr<lab::TokenSource>> load_text_tokens(const std::string& model_path) {
    const std::filesystem::path file = std::filesystem::path(model_path) / "tokenizer.json";
    MM_TRY(auto tokenizer, text::Tokenizer::load(file));
    MM_TRY(std::string sha256, lab::sha256_of_file(file.string()));
    // The name, not the path: equal tokenizers in different places are equal.
    lab::TokenizerIdentity identity{.name = std::filesystem::path(model_path).lexically_normal().filename().string(),
                                    .files_sha256 = std::move(sha256),
                                    .vocab = static_cast<std::uint32_t>(tokenizer->vocab_size()),
                                    .adds_bos = false};  // our server takes text prompts as they are
    return std::unique_ptr<lab::TokenSource>(std::make_unique<TextTokens>(std::move(tokenizer), std::move(identity)));
}

}  // namespace megamoe::apps
