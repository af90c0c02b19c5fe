#include "weights/model_cost.h"

#include <gtest/gtest.h>

#include "weights/testing_geometries.h"

namespace megamoe::weights {
namespace {

using testing::flash_geometry;
using testing::pro_geometry;

constexpr double kGiga = 1e9;
constexpr double kMi = 1024.0 * 1024.0;
constexpr double kGi = 1024.0 * kMi;

// The figures below are those of the model spec; the tolerance is one unit of their last digit (some are rounded up).

TEST(ModelCost, CountsParametersAsPublished) {
    const auto count = [](const ModelGeometry& g) { return static_cast<double>(sum(count_parameters(g))) / kGiga; };
    const auto mtp = [](const ModelGeometry& g) { return static_cast<double>(count_mtp_parameters(g)) / kGiga; };

    EXPECT_NEAR(count(flash_geometry()), 284.33, 0.01);
    EXPECT_NEAR(count(pro_geometry()), 1573.00, 0.01);
    EXPECT_NEAR(mtp(flash_geometry()), 6.61, 0.01);
    EXPECT_NEAR(mtp(pro_geometry()), 25.84, 0.01);
}

TEST(ModelCost, CountsActiveParametersAsPublished) {
    for (const auto& [geometry, without_embedding, with_embedding] :
         {std::tuple(flash_geometry(), 13.27, 13.80), std::tuple(pro_geometry(), 48.85, 49.78)}) {
        const KindTotals parameters = count_parameters(geometry);
        const auto active = static_cast<double>(touched_by_token(parameters, geometry));
        const auto embedding = static_cast<double>(at(parameters, WeightKind::kEmbedding));

        EXPECT_NEAR(active / kGiga, without_embedding, 0.01);
        EXPECT_NEAR((active + embedding) / kGiga, with_embedding, 0.01);
    }
}

TEST(ModelCost, CountsBytesAsPublished) {
    const auto bytes = [](const ModelGeometry& g) { return static_cast<double>(sum(count_bytes(g))); };

    EXPECT_NEAR(bytes(flash_geometry()) / kGiga, 156.0, 0.1);
    EXPECT_NEAR(bytes(flash_geometry()) / kGi, 145.3, 0.1);
    EXPECT_NEAR(bytes(pro_geometry()) / kGiga, 850.8, 0.1);
    EXPECT_NEAR(bytes(pro_geometry()) / kGi, 792.3, 0.1);
}

TEST(ModelCost, CountsBytesReadForATokenAsPublished) {
    struct Case {
        ModelGeometry geometry;
        double total, routed, head;
    };
    for (const auto& c : {Case{flash_geometry(), 11.22, 3.45, 1.06}, Case{pro_geometry(), 39.67, 12.85, 1.85}}) {
        const KindTotals bytes = count_bytes(c.geometry);
        const auto routed =
            static_cast<double>(at(bytes, WeightKind::kRoutedExperts)) / c.geometry.num_experts * c.geometry.top_k;

        EXPECT_NEAR(static_cast<double>(touched_by_token(bytes, c.geometry)) / kGiga, c.total, 0.01);
        EXPECT_NEAR(routed / kGiga, c.routed, 0.01);
        EXPECT_NEAR(static_cast<double>(at(bytes, WeightKind::kHead)) / kGiga, c.head, 0.01);
    }
}

TEST(ModelCost, CountsOperationsAsPublished) {
    EXPECT_NEAR(linear_flops(flash_geometry()) / kGiga, 26.54, 0.01);
    EXPECT_NEAR(linear_flops(pro_geometry()) / kGiga, 97.70, 0.01);
    struct Row {
        std::int64_t context;
        double flash_attention, flash_indexer, pro_attention, pro_indexer, digit;
    };
    const Row rows[] = {
        {1 << 10, 1.45, 0.09, 4.13, 0.13, 0.01},  {4 << 10, 2.22, 0.36, 10.36, 0.51, 0.01},
        {8 << 10, 2.30, 0.71, 10.62, 1.01, 0.01}, {32 << 10, 2.80, 2.84, 12.18, 4.06, 0.01},
        {128 << 10, 4.82, 11.4, 18.4, 16.2, 0.1}, {256 << 10, 7.50, 22.7, 26.7, 32.5, 0.1},
        {1 << 20, 23.6, 90.9, 76.7, 129.9, 0.1},
    };
    for (const Row& row : rows) {
        EXPECT_NEAR(attention_flops(flash_geometry(), row.context) / kGiga, row.flash_attention, row.digit)
            << row.context;
        EXPECT_NEAR(indexer_flops(flash_geometry(), row.context) / kGiga, row.flash_indexer, row.digit) << row.context;
        EXPECT_NEAR(attention_flops(pro_geometry(), row.context) / kGiga, row.pro_attention, row.digit) << row.context;
        EXPECT_NEAR(indexer_flops(pro_geometry(), row.context) / kGiga, row.pro_indexer, row.digit) << row.context;
    }
}

TEST(ModelCost, SizesTheCacheAsPublished) {
    EXPECT_EQ(cache_bytes_per_token(flash_geometry()), 6880);
    EXPECT_EQ(cache_bytes_per_token(pro_geometry()), 9848);
    EXPECT_NEAR(static_cast<double>(cache_window_bytes(flash_geometry())) / kMi, 5.38, 0.01);
    EXPECT_NEAR(static_cast<double>(cache_window_bytes(pro_geometry())) / kMi, 7.63, 0.01);
    EXPECT_NEAR(static_cast<double>(cache_state_bytes(flash_geometry())) / kMi, 11.64, 0.01);
    EXPECT_NEAR(static_cast<double>(cache_state_bytes(pro_geometry())) / kMi, 17.84, 0.01);
}

}  // namespace
}  // namespace megamoe::weights
