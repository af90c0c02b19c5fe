// When requests are released. Pure functions of seed and settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace megamoe::lab {

struct RampUp {
    bool exponential = false;
    double start_rps = 0;
    double end_rps = 0;
};

struct ArrivalOptions {
    double rate = 0;                // requests a second; > 0
    double burstiness = 1;          // gamma shape of the gaps: 1 Poisson, below 1 bursty, infinity constant
    bool rescale = true;            // stretch the gaps so that the last arrival is at count / rate exactly
    std::optional<RampUp> ramp_up;  // the rate moves from start to end over the requests; `rate` is then unused
    std::uint64_t seed = 42;
};

// Arrival times after the start, ascending, in whole microseconds (as nanoseconds), so that another libm gives the same
// ones.
// Spec  bench.md 3.2, 4.1, 8.4
std::vector<std::int64_t> arrival_times_ns(std::size_t count, const ArrivalOptions& options);

// The first `slots` requests spread evenly over `stagger_ms`; breaks the lock step of a closed loop's first wave.
std::vector<std::int64_t> staggered_times_ns(std::size_t slots, double stagger_ms);

}  // namespace megamoe::lab
