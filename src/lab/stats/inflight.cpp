#include "lab/stats/inflight.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "lab/stats/distribution.h"

namespace megamoe::lab {
namespace {

// Calls fn(count, length_ns) for every step's part inside the window.
template <class Fn>
void for_each_part(std::span<const InflightStep> steps, const Interval& window, const Fn& fn) {
    for (std::size_t k = 0; k < steps.size(); ++k) {
        const std::int64_t begin = std::max(steps[k].t_ns, window.begin_ns);
        const std::int64_t next = k + 1 < steps.size() ? steps[k + 1].t_ns : window.end_ns;
        const std::int64_t end = std::min(next, window.end_ns);
        if (end > begin) {
            fn(steps[k].count, end - begin);
        }
    }
}

}  // namespace

std::vector<InflightStep> inflight_steps(std::span<const Interval> intervals) {
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // (time, -1 or +1); sorting puts ends first
    for (const Interval& interval : intervals) {
        changes.emplace_back(interval.begin_ns, 1);
        changes.emplace_back(interval.end_ns, -1);
    }
    std::sort(changes.begin(), changes.end());
    std::vector<InflightStep> steps;
    std::int64_t count = 0;
    for (const auto& [t, change] : changes) {
        count += change;
        if (!steps.empty() && steps.back().t_ns == t) {
            steps.back().count = count;
        } else {
            steps.push_back({t, count});
        }
    }
    return steps;
}

Interval longest_at_least(std::span<const InflightStep> steps, double threshold) {
    Interval best;
    std::size_t k = 0;
    while (k < steps.size()) {
        if (static_cast<double>(steps[k].count) < threshold) {
            ++k;
            continue;
        }
        const std::int64_t begin = steps[k].t_ns;
        while (k < steps.size() && static_cast<double>(steps[k].count) >= threshold) {
            ++k;
        }
        const std::int64_t end = k < steps.size() ? steps[k].t_ns : begin;
        if (end - begin > best.end_ns - best.begin_ns) {
            best = {begin, end};
        }
    }
    return best;
}

double mean_inflight(std::span<const InflightStep> steps, const Interval& window) {
    double area = 0;
    for_each_part(steps, window, [&](std::int64_t count, std::int64_t length) {
        area += static_cast<double>(count) * static_cast<double>(length);
    });
    const auto length = static_cast<double>(window.end_ns - window.begin_ns);
    return length > 0 ? area / length : 0;
}

double median_inflight(std::span<const InflightStep> steps, const Interval& window) {
    std::vector<WeightedValue> counts;
    for_each_part(steps, window, [&](std::int64_t count, std::int64_t length) {
        counts.push_back({static_cast<double>(count), static_cast<std::uint64_t>(length)});
    });
    return counts.empty() ? 0 : Distribution(std::move(counts)).quantile(0.5);
}

}  // namespace megamoe::lab
