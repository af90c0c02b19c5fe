#include "frontend/text/prompt_constants.h"

#include <gtest/gtest.h>

#include <string>

namespace megamoe::text {
namespace {

// The real texts come with a checkpoint only, so what can be tested here is how others are refused.
TEST(PromptConstants, ACheckpointWithoutTheFileIsNotFound) {
    const auto constants = load_prompt_constants("models/mini");

    ASSERT_FALSE(constants);
    EXPECT_EQ(constants.error().code, Errc::kNotFound);
    EXPECT_NE(constants.error().what.find("models/mini/encoding/encoding_dsv4.py"), std::string::npos);
}

TEST(PromptConstants, ATextWithAnotherHashIsRefused) {
    const std::string python =
        "TOOLS_TEMPLATE = \"\"\"## Tools\n\n{tool_schemas}\n\nBe careful.\n\"\"\"\n"
        "response_format_template = (\"## Response Format:\\n\\n{schema}\")\n"
        "REASONING_EFFORT_MAX = (\"Think hard.\\n\\n\")\n";

    const auto constants = parse_prompt_constants(python, "encoding_dsv4.py");

    ASSERT_FALSE(constants);
    EXPECT_EQ(constants.error().code, Errc::kInvalidArgument);
    EXPECT_NE(constants.error().what.find("encoding_dsv4.py: the tools section"), std::string::npos);
}

}  // namespace
}  // namespace megamoe::text
