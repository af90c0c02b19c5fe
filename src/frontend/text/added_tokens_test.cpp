#include "frontend/text/added_tokens.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace megamoe::text {
namespace {

using Parts = std::vector<std::pair<std::int32_t, std::string>>;  // id or -1, text

Parts split(const std::vector<AddedToken>& tokens, const std::string& text,
            const std::vector<ByteRange>& literal = {}) {
    Parts parts;
    for (const Segment& segment : AddedTokenMatcher(tokens).split(text, literal)) {
        parts.emplace_back(segment.id, text.substr(segment.range.begin, segment.range.end - segment.range.begin));
    }
    return parts;
}

TEST(AddedTokens, TheLeftmostWinsAndOfThoseTheLongest) {
    const std::vector<AddedToken> tokens{
        {.id = 1, .content = "ab"}, {.id = 2, .content = "abc"}, {.id = 3, .content = "bcd"}};

    EXPECT_EQ(split(tokens, "xabcd"), (Parts{{-1, "x"}, {2, "abc"}, {-1, "d"}}));
    EXPECT_EQ(split(tokens, "abxbcd"), (Parts{{1, "ab"}, {-1, "x"}, {3, "bcd"}}));
    EXPECT_EQ(split(tokens, "xyz"), (Parts{{-1, "xyz"}}));
    EXPECT_EQ(split(tokens, ""), Parts{});
}

TEST(AddedTokens, NormalizedOnesComeAfterAllOthers) {
    const std::vector<AddedToken> tokens{{.id = 1, .content = "ab", .normalized = true}, {.id = 2, .content = "bc"}};

    EXPECT_EQ(split(tokens, "abcab"), (Parts{{-1, "a"}, {2, "bc"}, {1, "ab"}}));
}

TEST(AddedTokens, ASingleWordStandsBetweenOtherThanWordCharacters) {
    const std::vector<AddedToken> tokens{{.id = 1, .content = "go", .single_word = true}};

    EXPECT_EQ(split(tokens, "go"), (Parts{{1, "go"}}));
    EXPECT_EQ(split(tokens, "ago,go"), (Parts{{-1, "ago,"}, {1, "go"}}));
    EXPECT_EQ(split(tokens, "go\u00E9 go\U00031350"), (Parts{{-1, "go\u00E9 go\U00031350"}}));
}

TEST(AddedTokens, TakeWhiteSpaceAlongIfTheyStrip) {
    const std::vector<AddedToken> tokens{{.id = 1, .content = "L", .lstrip = true},
                                         {.id = 2, .content = "R", .rstrip = true}};

    EXPECT_EQ(split(tokens, "a \u3000Lb R\n c"),
              (Parts{{-1, "a"}, {1, " \u3000L"}, {-1, "b "}, {2, "R\n "}, {-1, "c"}}));
}

TEST(AddedTokens, AreOrdinaryTextWhereTheyTouchALiteralRange) {
    const std::vector<AddedToken> tokens{{.id = 1, .content = "<t>"}, {.id = 2, .content = "<t"}};

    EXPECT_EQ(split(tokens, "<t><t><t>", {{3, 6}}), (Parts{{1, "<t>"}, {-1, "<t>"}, {1, "<t>"}}));
    EXPECT_EQ(split(tokens, "<t>", {{1, 2}}), (Parts{{-1, "<t>"}}));
    EXPECT_EQ(split(tokens, "<t>", {{2, 3}}), (Parts{{2, "<t"}, {-1, ">"}}));
    EXPECT_EQ(split(tokens, "a<t>", {{0, 1}}), (Parts{{-1, "a"}, {1, "<t>"}}));
    EXPECT_EQ(split(tokens, "<t><t>", {{0, 6}}), (Parts{{-1, "<t><t>"}}));
}

}  // namespace
}  // namespace megamoe::text
