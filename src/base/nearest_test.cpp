#include "base/nearest.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace megamoe {
namespace {

TEST(Nearest, NameThatIsACandidateIsItsOwnNearest) {
    EXPECT_TRUE(rc::check([](const std::vector<std::string>& names) {
        RC_PRE(!names.empty());
        const std::string name = *rc::gen::elementOf(names);

        RC_ASSERT(nearest(name, names) == name);
    }));
}

TEST(Nearest, OneTypingErrorIsForgiven) {
    const std::vector<std::string> names{"--num-prompts", "--input-len", "--output-len"};

    EXPECT_EQ(nearest("--num-promts", names), "--num-prompts");
    EXPECT_EQ(nearest("--ouptut-len", names), "--output-len");
    EXPECT_EQ(nearest("--input_len", names), "--input-len");
}

TEST(Nearest, NothingNearGivesNoHint) {
    const std::vector<std::string> names{"--num-prompts", "--input-len"};

    EXPECT_EQ(nearest("--frobnicate", names), "");
}

}  // namespace
}  // namespace megamoe
