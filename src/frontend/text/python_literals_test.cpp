#include "frontend/text/python_literals.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace megamoe::text {
namespace {

using Literals = std::vector<std::string>;

TEST(PythonLiterals, KnowsSingleAndTripleQuotes) {
    EXPECT_EQ(python_string_literals("a = 'x\"y'\nb = \"it's\"\n"), (Literals{"x\"y", "it's"}));
    EXPECT_EQ(python_string_literals("a = \"\"\"two\n\"lines\" here\n\"\"\"\n"), (Literals{"two\n\"lines\" here\n"}));
    EXPECT_EQ(python_string_literals("a = ''"), (Literals{""}));
}

TEST(PythonLiterals, LiteralsSideBySideAreOne) {
    EXPECT_EQ(python_string_literals("a = 'x' \"y\""), (Literals{"xy"}));
    EXPECT_EQ(python_string_literals("a = (\n    'x'  # why\n    'y\\n'\n)\n"), (Literals{"xy\n"}));
    EXPECT_EQ(python_string_literals("a = 'x' \\\n  'y'"), (Literals{"xy"}));
}

TEST(PythonLiterals, LiteralsOfSeparateStatementsOrExpressionsAreNot) {
    EXPECT_EQ(python_string_literals("'x'\n'y'\n"), (Literals{"x", "y"}));
    EXPECT_EQ(python_string_literals("f('x', 'y')"), (Literals{"x", "y"}));
    EXPECT_EQ(python_string_literals("'x' + 'y' if 'z' in w else 'v'"), (Literals{"x", "y", "z", "v"}));
    EXPECT_EQ(python_string_literals("{'low': '', 'high': ('a' 'b'), 'max': 'c'}"),
              (Literals{"low", "", "high", "ab", "max", "c"}));
}

TEST(PythonLiterals, ReadsEscapesUnlessRaw) {
    EXPECT_EQ(python_string_literals(R"(a = "\n\t\r\\\"\'")"), (Literals{"\n\t\r\\\"'"}));
    EXPECT_EQ(python_string_literals(R"(a = r"\n\"")"), (Literals{R"(\n\")"}));
    EXPECT_EQ(python_string_literals("a = 'x\\\ny'"), (Literals{"xy"}));
    EXPECT_EQ(python_string_literals(R"(a = "\d")"), (Literals{R"(\d)"}));
}

TEST(PythonLiterals, APrefixIsNotAName) {
    EXPECT_EQ(python_string_literals("a = f'x' rb\"\\n\" u'z'"), (Literals{"x\\nz"}));
}

TEST(PythonLiterals, AQuoteInACommentIsNotALiteral) {
    EXPECT_EQ(python_string_literals("# it's\na = 'x'  # \"no\"\n# 'end"), (Literals{"x"}));
}

TEST(PythonLiterals, AnUnfinishedTextDoesNoHarm) {
    EXPECT_EQ(python_string_literals("a = 'x"), (Literals{"x"}));
    EXPECT_EQ(python_string_literals("a = '\\"), (Literals{"\\"}));
    EXPECT_EQ(python_string_literals(")))'x'\n'y'"), (Literals{"x", "y"}));
    EXPECT_EQ(python_string_literals(""), Literals{});
}

}  // namespace
}  // namespace megamoe::text
