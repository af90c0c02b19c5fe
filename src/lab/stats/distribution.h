// Percentiles and the usual summary of a set of values, each of which may count several times.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace megamoe::lab {

struct WeightedValue {
    double value = 0;
    std::uint64_t weight = 1;

    friend bool operator==(const WeightedValue&, const WeightedValue&) = default;
};

struct Percentile {
    double percent = 0;           // 99.9
    std::optional<double> value;  // none: too few values to say
};

// A figure that cannot be computed is absent, never 0.
struct Summary {
    std::uint64_t count = 0;
    std::optional<double> mean;
    std::optional<double> median;
    std::optional<double> sd;  // n-1
    std::optional<double> min;
    std::optional<double> max;
    std::vector<Percentile> percentiles;

    // Of the percentiles asked for; none also if it was not asked for.
    std::optional<double> at(double percent) const;
};

// A sorted multiset: `weight` copies of each value, not stored one by one.
class Distribution {
  public:
    // Values of weight 0 are dropped.
    explicit Distribution(std::vector<WeightedValue> values);
    explicit Distribution(std::span<const double> values);

    std::uint64_t count() const { return total_; }
    bool empty() const { return total_ == 0; }

    // Type 7 of Hyndman and Fan, NumPy's default: linear between order statistics. In  fraction  0 to 1; not empty
    double quantile(double fraction) const;
    double mean() const;

    // A percentile p from 99 on is only given when at least 100/(100-p) values stand behind it.
    // Spec  bench.md 6.3
    Summary summarize(std::span<const double> percents) const;

  private:
    double order_statistic(std::uint64_t rank) const;

    std::vector<WeightedValue> sorted_;
    std::vector<std::uint64_t> cumulative_;
    std::uint64_t total_ = 0;
};

}  // namespace megamoe::lab
