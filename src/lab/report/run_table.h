// The table a person reads in the terminal after one run.
#pragma once

#include <string>

#include "lab/report/run_facts.h"

namespace megamoe::lab {

// Figures, and below them in words whatever makes them doubtful.
std::string run_table(const Measured& run, const MeasureOptions& options, const Manifest& manifest);

// The first twenty requests that failed, one a line; empty if none did.
std::string failure_list(const Measured& run);

}  // namespace megamoe::lab
