// Is arm B different from arm A? The run is the unit: five thousand requests of one server process are one observation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace megamoe::lab {

enum class Verdict : std::uint8_t {
    kBetter,
    kWorse,
    kEquivalent,    // the whole interval lies inside the margin
    kSmall,         // not zero, but below the margin or the noise
    kInconclusive,  // more runs are needed
    kTooFewRuns,    // no verdict possible
};
std::string_view to_string(Verdict verdict);

struct CompareOptions {
    bool higher_is_better = true;
    double margin_pct = 1;  // smaller differences do not matter in practice
    double confidence = 0.95;
    std::size_t min_pairs = 3;
    std::uint64_t seed = 42;  // of the bootstrap
};

// All ratios are B over A; 1.05 = B is 5 % more.
struct Comparison {
    std::size_t pairs = 0;
    double ratio = 1;  // exp of the mean log ratio of the pairs
    double ratio_of_medians = 1;
    std::optional<double> low;  // of the ratio, t interval over pairs; from 2 pairs on
    std::optional<double> high;
    std::optional<double> p;              // two-sided, of the same t statistic
    std::optional<double> bootstrap_low;  // percentile interval of the ratio of medians; from 6 pairs on
    std::optional<double> bootstrap_high;
    // How far two single runs of one and the same arm lie apart in 95 % of cases, in percent: from the spread of the
    // repeats.
    std::optional<double> noise_pct;
    std::optional<double> detectable_pct;  // smallest true effect that this many pairs find in 80 % of cases
    double range_coverage = 0;  // probability that [smallest, largest] pair ratio holds the median, without a model
    Verdict verdict = Verdict::kTooFewRuns;
};

// In    a, b  one value a run, > 0; a[i] and b[i] were run close together
// Spec  bench.md 13.1 to 13.5 and 13.7, without an A/A experiment: the noise comes from the repeats themselves
Comparison compare_arms(std::span<const double> a, std::span<const double> b, const CompareOptions& options);

// The comparison in plain sentences. In  what  "request throughput"
std::string explain(const Comparison& comparison, const std::string& name_a, const std::string& name_b,
                    const std::string& what, const CompareOptions& options);

}  // namespace megamoe::lab
