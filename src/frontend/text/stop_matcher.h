// Finds stop strings in text that arrives in pieces, and holds back what may become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace megamoe::text {

// The match is the one that is complete first; of several that end at the same byte, the longest. So neither text nor
// match depends on how the text is cut. Aho-Corasick over bytes.
// Thread  one stream, one thread at a time
class StopMatcher {
  public:
    struct Output {
        std::string text;                    // safe to show; whole characters if the stops and the pieces are
        std::optional<std::size_t> matched;  // index of the stop string that ended the text, in this push
    };

    // In    stops      empty ones never match
    //       keep_stop  true: the stop string stays at the end of the text
    explicit StopMatcher(const std::vector<std::string>& stops, bool keep_stop = false);

    // Text behind a match is dropped, also in later pushes.
    // Cost  O(bytes), whatever the number of stop strings
    Output push(std::string_view piece);
    // The end of the stream without a match: what was held back.
    std::string flush();

    bool stopped() const { return stopped_; }
    // Bytes held back now; less than the longest stop string.
    std::size_t held_bytes() const { return held_.size(); }

  private:
    struct Node {
        std::int32_t depth = 0;
        std::int32_t fallback = 0;  // the longest proper suffix of this node's string that is a node too
        std::int32_t stop = -1;     // the longest stop string that its string ends with; -1 = none
        std::vector<std::pair<char, std::int32_t>> next;
    };

    Node& node(std::int32_t index) { return nodes_[static_cast<std::size_t>(index)]; }
    std::int32_t child(std::int32_t parent, char byte) const;
    std::int32_t add_child(std::int32_t parent, char byte);
    std::int32_t advance(std::int32_t from, char byte) const;
    void link_fallbacks();

    std::vector<Node> nodes_;
    std::vector<std::size_t> stop_bytes_;  // by stop string
    bool keep_stop_;
    std::int32_t state_ = 0;  // the longest end of the text that begins a stop string
    std::string held_;        // its string
    bool stopped_ = false;
};

}  // namespace megamoe::text
