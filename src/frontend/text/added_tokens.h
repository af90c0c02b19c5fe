// Tokens that are found in the text itself, before the pre-tokenizer sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/text/byte_range.h"
#include "frontend/text/regex.h"

namespace megamoe::text {

// One entry of `added_tokens`.
struct AddedToken {
    std::int32_t id = 0;
    std::string content;       // not empty
    bool special = false;      // left out by skip_special
    bool single_word = false;  // not beside a word character
    bool lstrip = false;       // takes the white space before it along
    bool rstrip = false;       // and behind it
    bool normalized = false;   // matched only after those that are not
};

// A part of the text: one added token, or text between them.
struct Segment {
    std::int32_t id = -1;  // -1: text
    ByteRange range;
};

// Thread  any
class AddedTokenMatcher {
  public:
    explicit AddedTokenMatcher(const std::vector<AddedToken>& tokens);

    // Cuts `text` at its added tokens: the leftmost one, and of those the longest. The whole text is searched for the
    // not normalized ones first.
    //
    // In    text     valid UTF-8
    //       literal  ascending, not overlapping: no token is found that touches one of these
    // Out   segments in order, none empty; together they are `text`, unless a token takes white space along
    // Cost  O(text bytes * bytes of the longest token)
    // Spec  Hugging Face `tokenizers`, AddedVocabulary
    std::vector<Segment> split(std::string_view text, std::span<const ByteRange> literal) const;

  private:
    // A trie over bytes. Node 0 is the root; a node's token is an index into tokens_.
    class Trie {
      public:
        void add(std::string_view content, std::int32_t token);
        // The longest token that `text` starts with; -1 = none.
        std::int32_t longest(std::string_view text) const;

      private:
        struct Node {
            std::map<char, std::size_t> next;
            std::int32_t token = -1;
        };
        std::vector<Node> nodes_{1};
    };

    // Cuts the text segment `range` of `text`, as a text of its own.
    void split_range(const Trie& trie, std::string_view text, ByteRange range, std::span<const ByteRange> literal,
                     std::vector<Segment>& out) const;
    bool stands_alone(std::string_view sentence, ByteRange match) const;
    ByteRange with_white_space(const AddedToken& token, std::string_view sentence, ByteRange match) const;

    std::vector<AddedToken> tokens_;
    Trie plain_;
    Trie normalized_;
    Regex word_;
    Regex space_;
};

}  // namespace megamoe::text
