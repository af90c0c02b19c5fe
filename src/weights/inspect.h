// What a loaded checkpoint is and costs, as text for a person: behind `megamoe model inspect`.
#pragma once

#include <string>

#include "weights/v4_weights.h"

namespace megamoe::weights {

// Several lines: geometry, tensor counts and dtypes found, parameters (total and active for a token), bytes by kind,
// cost of a decoded token, cache bytes. Counts come from model_cost.h, bytes and dtypes from the files.
std::string describe_model(const V4Weights& weights);

}  // namespace megamoe::weights
