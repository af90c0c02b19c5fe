// Byte-pair encoding of one piece of text.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace megamoe::text {

// `left` followed by `right` becomes `result`. In a list of rules the earlier one goes first.
struct MergeRule {
    std::int32_t left = 0;
    std::int32_t right = 0;
    std::int32_t result = 0;
};

// A piece that is one token needs one look-up: such tokens are found once, at construction. No cache, no lock.
// Thread  any
class Bpe {
  public:
    // In    byte_ids  token of each single byte
    //       merges    in order of their rank
    //       tokens    bytes by id, "" = no such id
    Bpe(const std::array<std::int32_t, 256>& byte_ids, const std::vector<MergeRule>& merges,
        const std::vector<std::string>& tokens);

    // Appends the ids of `piece`.
    // Cost  O(n log n) in its bytes
    void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

  private:
    struct Merge {
        std::int32_t rank = 0;
        std::int32_t result = 0;
    };
    struct BytesHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view bytes) const { return std::hash<std::string_view>{}(bytes); }
    };

    const Merge* find_merge(std::int32_t left, std::int32_t right) const;
    void merge(std::string_view piece, std::vector<std::int32_t>& ids) const;

    std::array<std::int32_t, 256> byte_ids_;
    std::unordered_map<std::uint64_t, Merge> merges_;
    std::unordered_map<std::string, std::int32_t, BytesHash, std::equal_to<>> whole_pieces_;
};

}  // namespace megamoe::text
