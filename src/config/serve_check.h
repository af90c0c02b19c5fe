// Fills in what a configuration leaves open, then checks it against the model and the machine. Pure.
//
// Spec  serving spec, 1.1 and 8
#pragma once

#include <cstdint>
#include <vector>

#include "config/finding.h"
#include "config/model_geometry.h"
#include "config/serve_options.h"

namespace megamoe {

struct MachineFacts {
    std::int32_t cores = 1;
    std::int64_t file_limit = 0;  // file descriptors this process may have open
};

// Fills in the sizes and the DP attention that follow from the others, ranks, threads, context length and served name,
// and brings request limits to a multiple of the ranks. Every change that a user might not expect is a note in
// `findings`.
void derive_options(ServeOptions& options, const ModelGeometry& geometry, const MachineFacts& machine,
                    std::vector<Finding>& findings);

// Everything that is wrong with derived options, all at once; empty = start.
std::vector<Finding> check_options(const ServeOptions& options, const ModelGeometry& geometry,
                                   const MachineFacts& machine);

}  // namespace megamoe
