#include "weights/inspect.h"

#include <gtest/gtest.h>

namespace megamoe::weights {
namespace {

TEST(Inspect, DescribesTheMiniModel) {
    const auto weights = load_v4("models/mini");
    ASSERT_TRUE(weights) << weights.error().what;

    const std::string text = describe_model(*weights.value());

    for (const char* part : {
             "6 (1 window, 3 CSA, 2 HCA), hidden 256, 4 streams, vocabulary 4096, 4096 positions",
             "8 heads x 128 (rope 64)",
             "32 routed top-4 and 1 shared, width 128, 2 layers routed by hash",
             "2 with 1373 tensors, 20.",
             "1373 in the released layout, 0 of MTP layers",
             "expert format   FP4",
             "25.2",  // M parameters
             "routed experts",
             "at context 0 (attention 0 FLOP, indexer 0 FLOP)",
             "at context 4096",
         }) {
        EXPECT_NE(text.find(part), std::string::npos) << part << "\nin:\n" << text;
    }
}

}  // namespace
}  // namespace megamoe::weights
