#include "compute/cpu/isa.h"

#include <gtest/gtest.h>

namespace megamoe::cpu {
namespace {

TEST(Isa, EveryLevelUpToThisMachinesParsesBack) {
    for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
        const auto parsed = parse_isa(name(isa));
        EXPECT_EQ(static_cast<bool>(parsed), isa <= detect_isa());
        if (parsed) {
            EXPECT_EQ(parsed.value(), isa);
        }
    }
}

TEST(Isa, AnUnknownNameIsRefusedWithTheKnownOnes) {
    const auto parsed = parse_isa("avx9000");

    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code, Errc::kInvalidArgument);
    EXPECT_NE(parsed.error().what.find("avx9000"), std::string::npos);
    EXPECT_NE(parsed.error().hint.find("avx512bf16"), std::string::npos);
}

}  // namespace
}  // namespace megamoe::cpu
