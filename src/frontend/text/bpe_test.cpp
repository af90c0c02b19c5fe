#include "frontend/text/bpe.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace megamoe::text {
namespace {

// A vocabulary of single bytes, whose id is the byte, and merges of earlier tokens.
struct Vocabulary {
    std::vector<std::string> tokens;
    std::array<std::int32_t, 256> byte_ids{};
    std::vector<MergeRule> merges;

    Vocabulary() {
        for (std::int32_t byte = 0; byte < 256; ++byte) {
            tokens.emplace_back(1, static_cast<char>(byte));
            byte_ids[static_cast<std::size_t>(byte)] = byte;
        }
    }

    std::int32_t id(const std::string& token) const {
        const auto found = std::find(tokens.begin(), tokens.end(), token);
        MM_CHECK(found != tokens.end(), token);
        return static_cast<std::int32_t>(found - tokens.begin());
    }

    void merge(const std::string& left, const std::string& right) {
        if (std::find(tokens.begin(), tokens.end(), left + right) == tokens.end()) {
            tokens.push_back(left + right);
        }
        merges.push_back({id(left), id(right), id(left + right)});
    }
};

// The definition, word for word: while any pair has a rule, apply the earliest rule at its leftmost place.
std::vector<std::int32_t> merge_slowly(const Vocabulary& vocabulary, const std::string& piece) {
    std::vector<std::int32_t> ids;
    for (const char byte : piece) {
        ids.push_back(static_cast<unsigned char>(byte));
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (const MergeRule& rule : vocabulary.merges) {
            const std::vector pair{rule.left, rule.right};
            const auto place = std::search(ids.begin(), ids.end(), pair.begin(), pair.end());
            if (place != ids.end()) {
                *place = rule.result;
                ids.erase(place + 1);
                changed = true;
                break;
            }
        }
    }
    return ids;
}

Vocabulary random_vocabulary() {
    Vocabulary vocabulary;
    std::vector<std::string> known{"a", "b", "c"};
    const auto num_merges = *rc::gen::inRange(0, 12);
    for (int i = 0; i < num_merges; ++i) {
        const std::string left = *rc::gen::elementOf(known);
        const std::string right = *rc::gen::elementOf(known);
        const auto same_pair = [&](const MergeRule& rule) {
            return rule.left == vocabulary.id(left) && rule.right == vocabulary.id(right);
        };
        if (std::none_of(vocabulary.merges.begin(), vocabulary.merges.end(), same_pair)) {
            vocabulary.merge(left, right);
            known.push_back(left + right);
        }
    }
    return vocabulary;
}

TEST(Bpe, AppliesTheEarliestRuleAtItsLeftmostPlaceUntilNoneIsLeft) {
    EXPECT_TRUE(rc::check([] {
        const Vocabulary vocabulary = random_vocabulary();
        const auto piece = *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c')));
        const Bpe bpe(vocabulary.byte_ids, vocabulary.merges, vocabulary.tokens);
        std::vector<std::int32_t> ids;

        bpe.encode(piece, ids);

        RC_ASSERT(ids == merge_slowly(vocabulary, piece));
    }));
}

TEST(Bpe, ATokenThatNoMergeMakesIsNotUsed) {
    Vocabulary vocabulary;
    vocabulary.tokens.push_back("ab");
    const Bpe bpe(vocabulary.byte_ids, vocabulary.merges, vocabulary.tokens);
    std::vector<std::int32_t> ids;

    bpe.encode("ab", ids);

    EXPECT_EQ(ids, (std::vector<std::int32_t>{'a', 'b'}));
}

TEST(Bpe, AppendsToWhatIsThere) {
    Vocabulary vocabulary;
    vocabulary.merge("a", "b");
    const Bpe bpe(vocabulary.byte_ids, vocabulary.merges, vocabulary.tokens);
    std::vector<std::int32_t> ids{7};

    bpe.encode("ab", ids);
    bpe.encode("c", ids);

    EXPECT_EQ(ids, (std::vector<std::int32_t>{7, 256, 'c'}));
}

}  // namespace
}  // namespace megamoe::text
