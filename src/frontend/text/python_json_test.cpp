#include "frontend/text/python_json.h"

#include <gtest/gtest.h>

#include <string>

namespace megamoe::text {
namespace {

struct Case {
    const char* json;
    const char* python;
};

// Right column: what Python 3.11 prints.
TEST(PythonJson, PrintsAsPythonDoes) {
    for (const auto& [json, python] : {
             Case{R"({"a":1,"b":[true,false,null],"c":{}})", R"({"a": 1, "b": [true, false, null], "c": {}})"},
             Case{R"(  [ ]  )", "[]"},
             Case{R"("x")", R"("x")"},
             Case{R"({"b":1,"a":2,"b":3})", R"({"b": 3, "a": 2})"},
             Case{R"("\u00e9\ud83d\ude00\/\u007f")", "\"é😀/\x7F\""},
             Case{R"("\"\\\b\f\n\r\t\u0001\u001f")", R"("\"\\\b\f\n\r\t\u0001\u001f")"},
             Case{"123456789012345678901234567890", "123456789012345678901234567890"},
             Case{"-9223372036854775809", "-9223372036854775809"},
             Case{"18446744073709551615", "18446744073709551615"},
             Case{"-0", "0"},
             Case{"-0.0", "-0.0"},
             Case{"1.0", "1.0"},
             Case{"1e5", "100000.0"},
             Case{"1E15", "1000000000000000.0"},
             Case{"1e16", "1e+16"},
             Case{"123456789012345680.0", "1.2345678901234568e+17"},
             Case{"0.0001", "0.0001"},
             Case{"0.00001", "1e-05"},
             Case{"1.5e300", "1.5e+300"},
             Case{"0.1", "0.1"},
             Case{"3.141592653589793238", "3.141592653589793"},
         }) {
        EXPECT_EQ(to_python_json(json), python) << json;
    }
}

TEST(PythonJson, WhatIsNotJsonIsNothing) {
    for (const char* text : {"", "{", "{\"a\":}", "[1,]", "nul", "1 2", "{'a': 1}", "NaN", "\"\xFF\"", "\"\\ud800\""}) {
        EXPECT_EQ(to_python_json(text), std::nullopt) << text;
        EXPECT_EQ(python_json_members(text), std::nullopt) << text;
    }
}

TEST(PythonJson, NestingHasALimit) {
    const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };

    EXPECT_EQ(to_python_json(nested(kMaxJsonDepth)), nested(kMaxJsonDepth));
    EXPECT_EQ(to_python_json(nested(kMaxJsonDepth + 1)), std::nullopt);
    EXPECT_EQ(to_python_json(std::string(1'000'000, '[')), std::nullopt);
}

TEST(PythonJson, MembersOfAnObjectKeepStringsAsTheyAre) {
    const auto members = python_json_members(R"({"id": 7, "tag": "a \"b\"\n", "xs": [1,"2"], "id": null})");

    ASSERT_TRUE(members);
    EXPECT_EQ(*members, (std::vector<JsonMember>{
                            {"id", "null", false}, {"tag", "a \"b\"\n", true}, {"xs", "[1, \"2\"]", false}}));
}

TEST(PythonJson, OnlyAnObjectHasMembers) {
    EXPECT_EQ(python_json_members("[{\"a\": 1}]"), std::nullopt);
    EXPECT_EQ(python_json_members("\"a\""), std::nullopt);
    EXPECT_EQ(python_json_members("{}"), std::vector<JsonMember>{});
}

}  // namespace
}  // namespace megamoe::text
