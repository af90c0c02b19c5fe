// Shape -> how to run it. Pure, printable, tested without a device.
#pragma once

#include <cstdint>
#include <string>

#include "compute/mega/layout.h"

namespace megamoe::cuda {

struct MegaMoeConfig {
    std::int32_t tokens = 0;  // rows of a block, the N of the matrix instruction: 8, 16, 24, 32, 48, 64, 80, 96 or 112
    std::int32_t unit_blocks = 8;      // blocks that share a weight tile while it is in L2
    std::int32_t lag = 8;              // units between an expert's first and second layer
    std::int32_t ring_blocks = 0;      // 0 = no ring: room for the worst case
    std::int32_t prefetch_panels = 0;  // weight panels a thread block prefetches before it knows the counts
};

// Expected time of an expert's share of one weight panel, in clocks, with blocks of `tokens` rows and `mean` rows an
// expert.
double expected_panel_clocks(std::int32_t tokens, double mean);

// In    rows_per_rank  rows that each rank brings, at most
// Same  a pure function; more rows are never expected to take less time
MegaMoeConfig choose_config(const mega::Shape& shape, std::int32_t rows_per_rank);

std::string to_string(const MegaMoeConfig& config);

}  // namespace megamoe::cuda
