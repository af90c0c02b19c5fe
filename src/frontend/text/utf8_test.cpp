#include "frontend/text/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <string>
#include <utility>

namespace megamoe::text {
namespace {

std::string replacements(int count) {
    std::string out;
    for (int i = 0; i < count; ++i) {
        out += kReplacement;
    }
    return out;
}

// Bytes that begin, continue or break characters, far more often than random ones do.
rc::Gen<std::string> tricky_bytes() {
    return rc::gen::container<std::string>(rc::gen::element('a', '\x80', '\x9F', '\xA0', '\xBF', '\xC0', '\xC2', '\xE0',
                                                            '\xE1', '\xED', '\xF0', '\xF4', '\xF5', '\xFF'));
}

TEST(Utf8Repair, TheResultDoesNotDependOnTheCuts) {
    EXPECT_TRUE(rc::check([] {
        const auto bytes = *tricky_bytes();
        const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
        std::string pieces;
        Utf8Repair repair;
        repair.append(std::string_view(bytes).substr(0, cut), pieces);
        repair.append(std::string_view(bytes).substr(cut), pieces);
        repair.finish(pieces);

        RC_ASSERT(pieces == repair_utf8(bytes));
    }));
}

TEST(Utf8Repair, RepairedTextNeedsNoRepair) {
    EXPECT_TRUE(rc::check([] {
        const std::string repaired = repair_utf8(*tricky_bytes());

        RC_ASSERT(repair_utf8(repaired) == repaired);
    }));
}

TEST(Utf8Repair, ReplacesEachMaximalSubpartOnceAsInTheUnicodeStandard) {
    // Tables 3-8 to 3-11 of the standard.
    EXPECT_EQ(repair_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), replacements(8) + "A");
    EXPECT_EQ(repair_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), replacements(8) + "A");
    EXPECT_EQ(repair_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), replacements(5) + "A" + replacements(2) + "B");
    EXPECT_EQ(repair_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), replacements(4) + "A");
}

TEST(Utf8Repair, KeepsTheFirstAndLastCharacterOfEachLength) {
    for (const std::string& text :
         {std::string(1, '\0'), std::string("\x7F"), std::string("\u0080"), std::string("\u07FF"),
          std::string("\u0800"), std::string("\uD7FF"), std::string("\uE000"), std::string("\uFFFF"),
          std::string("\U00010000"), std::string("\U0010FFFF")}) {
        EXPECT_EQ(repair_utf8(text), text);
    }
}

TEST(Utf8Repair, HoldsBackAnUnfinishedCharacterOnly) {
    Utf8Repair repair;
    std::string out;

    repair.append("a\xF0\x9F\x91", out);
    EXPECT_EQ(out, "a");

    repair.append("\x8D", out);
    EXPECT_EQ(out, "a\U0001F44D");
}

}  // namespace
}  // namespace megamoe::text
