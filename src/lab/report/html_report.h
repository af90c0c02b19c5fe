// An experiment as one HTML file: no network, no script, readable when mailed to a colleague.
#pragma once

#include <string>

#include "lab/report/experiment.h"

namespace megamoe::lab {

// First what changed, by how much, whether it is noise and whether the arms may be compared; then distributions, every
// run, and how to repeat it.
std::string html_report(const Experiment& experiment);

}  // namespace megamoe::lab
