// A tokenizer for tests whose decode and encode are not inverse: neighbours merge, as in real ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lab/manifest/token_source.h"

namespace megamoe::lab {

// Tokens: 0 special, every lower-case letter and the space, every pair of a vowel and a letter. Encode takes the
// longest match.
class PairTokens final : public TokenSource {
  public:
    explicit PairTokens(bool adds_bos = false) {
        words_.emplace_back("<s>");
        for (char c = 'a'; c <= 'z'; ++c) {
            words_.emplace_back(1, c);
        }
        words_.emplace_back(" ");
        for (const char vowel : {'a', 'e', 'i', 'o', 'u'}) {
            for (char c = 'a'; c <= 'z'; ++c) {
                words_.push_back({vowel, c});
            }
        }
        for (std::uint32_t id = 1; id < words_.size(); ++id) {
            ids_.emplace(words_[id], id);
        }
        identity_ = {.name = "pairs",
                     .files_sha256 = "test",
                     .vocab = static_cast<std::uint32_t>(words_.size()),
                     .adds_bos = adds_bos};
    }

    const TokenizerIdentity& identity() const override { return identity_; }
    bool is_special(std::uint32_t id) const override { return id == 0; }
    std::vector<std::uint32_t> encode(std::string_view text) const override {
        std::vector<std::uint32_t> ids;
        while (!text.empty()) {
            const auto pair = ids_.find(std::string(text.substr(0, 2)));
            const auto found = pair != ids_.end() ? pair : ids_.find(std::string(text.substr(0, 1)));
            if (found != ids_.end()) {
                ids.push_back(found->second);
            }
            text.remove_prefix(found == ids_.end() ? 1 : found->first.size());
        }
        return ids;
    }
    std::string decode(std::span<const std::uint32_t> ids) const override {
        std::string text;
        for (const std::uint32_t id : ids) {
            text += words_.at(id);
        }
        return text;
    }

  private:
    std::vector<std::string> words_;
    std::unordered_map<std::string, std::uint32_t> ids_;
    TokenizerIdentity identity_;
};

}  // namespace megamoe::lab
