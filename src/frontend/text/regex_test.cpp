#include "frontend/text/regex.h"

#include <gtest/gtest.h>

#include <string>

#include "frontend/text/regex_dialect.h"

namespace megamoe::text {
namespace {

Regex compile(std::string_view pattern) {
    auto regex = Regex::compile(pattern);
    EXPECT_TRUE(regex) << (regex ? "" : to_string(regex.error()));
    return std::move(regex).take();
}

TEST(Regex, FindsTheFirstMatchAtOrBehindTheStart) {
    const Regex digits = compile("\\p{N}{1,3}");

    EXPECT_EQ(digits.find("ab1234", 0), (ByteRange{2, 5}));
    EXPECT_EQ(digits.find("ab1234", 5), (ByteRange{5, 6}));
    EXPECT_EQ(digits.find("ab1234", 6), std::nullopt);
}

TEST(Regex, WhiteSpaceIsUnicodesProperty) {
    const Regex space = compile("\\s");

    EXPECT_TRUE(space.find("\u0085", 0));
    EXPECT_TRUE(space.find("\u3000", 0));
    EXPECT_FALSE(space.find("\u180E", 0));  // a separator until Unicode 6.3
    EXPECT_TRUE(compile("\\S").find("\u180E", 0));
}

TEST(Regex, CategoriesKnowCharactersYoungerThanTheLibrary) {
    EXPECT_TRUE(compile("\\p{S}").find("\U0001FAE8", 0));     // shaking face, Unicode 15
    EXPECT_TRUE(compile("[x\\p{L}]").find("\U00031350", 0));  // an ideograph of extension H
    EXPECT_FALSE(compile("[^x\\p{L}]").find("\U00031350", 0));
    EXPECT_FALSE(compile("\\P{L}").find("\U00031350", 0));
    EXPECT_TRUE(compile("\\p{Nd}").find("\U00011BF0", 0));  // Sunuwar digit zero, Unicode 16
}

TEST(Regex, ALiteralIsNotAPattern) {
    auto regex = Regex::compile_literal("a.[");
    ASSERT_TRUE(regex);

    EXPECT_EQ(regex.value().find("abxa.[", 0), (ByteRange{3, 6}));
}

TEST(Regex, ALongRunIsOneMatch) {
    const std::string spaces(3'000'000, ' ');

    EXPECT_EQ(compile("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+").find(spaces, 0), (ByteRange{0, spaces.size()}));
    EXPECT_EQ(compile("(?:a|b)+").find(std::string(300'000, 'a'), 0), (ByteRange{0, 300'000}));
}

TEST(Regex, RefusesWhatItCannotKeepTheMeaningOf) {
    for (const char* pattern :
         {"\\w+", "\\bx", "[a[b]]", "[a&&b]", "\\p{Han}", "\\p{C}", "\\pL", "[\\P{L}]", "(", "a*"}) {
        const auto regex = Regex::compile(pattern);
        ASSERT_FALSE(regex) << pattern;
        EXPECT_NE(regex.error().what.find(pattern), std::string::npos) << regex.error().what;
    }
}

}  // namespace
}  // namespace megamoe::text
