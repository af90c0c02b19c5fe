#include "lab/stats/distribution.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace megamoe::lab {
namespace {

std::vector<WeightedValue> with_weight_one(std::span<const double> values) {
    std::vector<WeightedValue> weighted;
    weighted.reserve(values.size());
    for (const double value : values) {
        weighted.push_back({value, 1});
    }
    return weighted;
}

bool enough_for(double percent, std::uint64_t count) {
    // The tolerance lets 1000 values carry a P99.9, although 100 - 99.9 is not exactly 0.1.
    return percent < 99 || static_cast<double>(count) * (100 - percent) >= 100 * (1 - 1e-9);
}

}  // namespace

std::optional<double> Summary::at(double percent) const {
    for (const Percentile& p : percentiles) {
        if (p.percent == percent) {
            return p.value;
        }
    }
    return std::nullopt;
}

Distribution::Distribution(std::span<const double> values) : Distribution(with_weight_one(values)) {}

Distribution::Distribution(std::vector<WeightedValue> values) : sorted_(std::move(values)) {
    std::erase_if(sorted_, [](const WeightedValue& v) { return v.weight == 0; });
    std::sort(sorted_.begin(), sorted_.end(),
              [](const WeightedValue& a, const WeightedValue& b) { return a.value < b.value; });
    cumulative_.reserve(sorted_.size());
    for (const WeightedValue& v : sorted_) {
        total_ += v.weight;
        cumulative_.push_back(total_);
    }
}

double Distribution::order_statistic(std::uint64_t rank) const {
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), rank);
    return sorted_[static_cast<std::size_t>(found - cumulative_.begin())].value;
}

double Distribution::quantile(double fraction) const {
    MM_CHECK(!empty() && fraction >= 0 && fraction <= 1, "quantile", fraction, "of", total_);
    const double h = static_cast<double>(total_ - 1) * fraction;
    const double below = std::floor(h);
    const auto rank = static_cast<std::uint64_t>(below);
    const double low = order_statistic(rank);
    const double high = order_statistic(std::min(rank + 1, total_ - 1));
    return low + (h - below) * (high - low);
}

double Distribution::mean() const {
    double sum = 0;
    for (const WeightedValue& v : sorted_) {
        sum += v.value * static_cast<double>(v.weight);
    }
    return sum / static_cast<double>(total_);
}

Summary Distribution::summarize(std::span<const double> percents) const {
    Summary summary;
    summary.count = total_;
    for (const double percent : percents) {
        const bool known = !empty() && enough_for(percent, total_);
        summary.percentiles.push_back({percent, known ? std::optional(quantile(percent / 100)) : std::nullopt});
    }
    if (empty()) {
        return summary;
    }
    const double mean_value = mean();
    summary.mean = mean_value;
    summary.median = quantile(0.5);
    summary.min = sorted_.front().value;
    summary.max = sorted_.back().value;
    if (total_ > 1) {
        double squares = 0;
        for (const WeightedValue& v : sorted_) {
            squares += (v.value - mean_value) * (v.value - mean_value) * static_cast<double>(v.weight);
        }
        summary.sd = std::sqrt(squares / static_cast<double>(total_ - 1));
    }
    return summary;
}

}  // namespace megamoe::lab
