#include "frontend/text/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

namespace megamoe::text {
namespace {

TEST(ByteAlphabet, EveryByteHasASpellingOfItsOwnThatReadsBack) {
    std::set<std::string> spellings;
    for (int byte = 0; byte < 256; ++byte) {
        const std::string spelling = spell_byte(static_cast<std::uint8_t>(byte));
        EXPECT_EQ(unspell(spelling), std::string(1, static_cast<char>(byte)));
        spellings.insert(spelling);
    }
    EXPECT_EQ(spellings.size(), 256U);
}

TEST(ByteAlphabet, SpellsSpaceNewlineAndUpperHalfAsGpt2Does) {
    EXPECT_EQ(spell_byte(' '), "Ġ");
    EXPECT_EQ(spell_byte('\n'), "Ċ");
    EXPECT_EQ(spell_byte(0xAD), "Ń");
    EXPECT_EQ(spell_byte(0xE4), "ä");
}

TEST(ByteAlphabet, ASpellingWithAForeignCharacterStandsForItself) {
    EXPECT_EQ(unspell("<｜User｜>"), "<｜User｜>");
    EXPECT_EQ(unspell("a b"), "a b");
    EXPECT_EQ(unspell("<think>"), "<think>");
    EXPECT_EQ(unspell("a\xC4"), "a\xC4");
}

}  // namespace
}  // namespace megamoe::text
