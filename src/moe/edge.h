// The edges of the fused operator's protocol: the points where one thread hands something to another. Time-outs name
// them, and a test may slow them down.
#pragma once

#include <cstdint>

namespace megamoe::moe {

// Spec  operator spec, 6.3 (the numbers of its table)
enum class Edge : std::uint32_t {
    kStage = 0,     // own rows where peers can pull them
    kIndex = 1,     // list of rows, pushed to the expert's rank
    kCounts = 2,    // count that makes a list valid
    kPull = 3,      // rows, pulled from their source
    kBlock = 4,     // block of pulled rows, to the first layer
    kFirst = 5,     // tile of activations, to the second layer
    kSlot = 6,      // block slot, free again
    kReturn = 7,    // results, written to their source
    kDone = 8,      // word that all results are there
    kCombine = 10,  // sum of the results at home
};

}  // namespace megamoe::moe
