#include "lab/client/arrivals.h"

#include <cmath>

#include "lab/core/rng.h"

namespace megamoe::lab {
namespace {

std::int64_t whole_us(double seconds) {
    return static_cast<std::int64_t>(std::llround(seconds * 1e6)) * 1000;
}

double rate_at(const ArrivalOptions& options, std::size_t i, std::size_t count) {
    if (!options.ramp_up) {
        return options.rate;
    }
    const RampUp& ramp = *options.ramp_up;
    const double progress = static_cast<double>(i) / static_cast<double>(count > 1 ? count - 1 : 1);
    return ramp.exponential ? ramp.start_rps * std::pow(ramp.end_rps / ramp.start_rps, progress)
                            : ramp.start_rps + (ramp.end_rps - ramp.start_rps) * progress;
}

}  // namespace

std::vector<std::int64_t> arrival_times_ns(std::size_t count, const ArrivalOptions& options) {
    std::vector<double> at;
    at.reserve(count);
    double now = 0;
    double unit_gaps = 0;  // what `now` would be if every gap had its mean
    for (std::size_t i = 0; i < count; ++i) {
        const double mean_gap = 1 / rate_at(options, i, count);
        Rng rng = Rng::stream(options.seed, "arr", i);
        const double gap = std::isinf(options.burstiness) ? 1 : rng.gamma(options.burstiness) / options.burstiness;
        now += gap * mean_gap;
        unit_gaps += mean_gap;
        at.push_back(now);
    }
    const double stretch = options.rescale && now > 0 ? unit_gaps / now : 1;
    std::vector<std::int64_t> times;
    times.reserve(count);
    for (const double t : at) {
        times.push_back(whole_us(t * stretch));
    }
    return times;
}

std::vector<std::int64_t> staggered_times_ns(std::size_t slots, double stagger_ms) {
    std::vector<std::int64_t> times;
    times.reserve(slots);
    for (std::size_t k = 0; k < slots; ++k) {
        times.push_back(whole_us(stagger_ms / 1000 * static_cast<double>(k) / static_cast<double>(slots)));
    }
    return times;
}

}  // namespace megamoe::lab
