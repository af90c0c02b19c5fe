// How many requests were in flight over time: a sweep over their begins and ends.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace megamoe::lab {

struct Interval {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
};

// From `t_ns` until the next step's time, `count` intervals are open.
struct InflightStep {
    std::int64_t t_ns = 0;
    std::int64_t count = 0;
};

// The staircase, ascending in time, one step a time. At equal times ends come before begins.
std::vector<InflightStep> inflight_steps(std::span<const Interval> intervals);

// The longest stretch of the staircase with count >= threshold; empty (begin == end) if there is none.
Interval longest_at_least(std::span<const InflightStep> steps, double threshold);

// Time average over [window.begin, window.end]; 0 for an empty window.
double mean_inflight(std::span<const InflightStep> steps, const Interval& window);

// The time-weighted median of the count over the window.
double median_inflight(std::span<const InflightStep> steps, const Interval& window);

}  // namespace megamoe::lab
