#include "lab/stats/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "lab/core/rng.h"
#include "lab/stats/distribution.h"
#include "lab/stats/student_t.h"

namespace megamoe::lab {
namespace {

constexpr std::size_t kPairsForBootstrap = 6;  // three values have only ten different resamples
constexpr double kZ95 = 1.959963984540054;
constexpr double kZ80 = 0.8416212335729143;

double mean_of(std::span<const double> values) {
    double sum = 0;
    for (const double v : values) {
        sum += v;
    }
    return sum / static_cast<double>(values.size());
}

double squares_around_mean(std::span<const double> values) {
    const double mean = mean_of(values);
    double sum = 0;
    for (const double v : values) {
        sum += (v - mean) * (v - mean);
    }
    return sum;
}

double median_of(std::span<const double> values) {
    return Distribution(values).quantile(0.5);
}

std::vector<double> logs(std::span<const double> values) {
    std::vector<double> out;
    for (const double v : values) {
        MM_CHECK(v > 0, "run value", v);
        out.push_back(std::log(v));
    }
    return out;
}

double as_percent(double log_ratio) {
    return 100 * std::expm1(log_ratio);
}

// Resamples pairs, so that what a pair shares stays shared.
std::pair<double, double> bootstrap(std::span<const double> a, std::span<const double> b,
                                    const CompareOptions& options) {
    constexpr int kResamples = 10000;
    std::vector<double> ratios;
    ratios.reserve(kResamples);
    Rng rng = Rng::stream(options.seed, "bootstrap", 0);
    std::vector<double> drawn_a(a.size());
    std::vector<double> drawn_b(b.size());
    for (int k = 0; k < kResamples; ++k) {
        for (std::size_t i = 0; i < a.size(); ++i) {
            const auto pick = static_cast<std::size_t>(rng.below(a.size()));
            drawn_a[i] = a[pick];
            drawn_b[i] = b[pick];
        }
        ratios.push_back(median_of(drawn_b) / median_of(drawn_a));
    }
    const Distribution spread{std::span<const double>(ratios)};
    const double tail = (1 - options.confidence) / 2;
    return {spread.quantile(tail), spread.quantile(1 - tail)};
}

// In `low`, `high`, `effect`, `noise`: log ratios, positive = B better.
Verdict decide(double effect, double low, double high, double noise, std::size_t pairs, const CompareOptions& options) {
    const double margin = std::log1p(options.margin_pct / 100);
    const double threshold = std::max(margin, noise / std::sqrt(static_cast<double>(pairs)));
    if (low > 0 && effect > threshold) {
        return Verdict::kBetter;
    }
    if (high < 0 && -effect > threshold) {
        return Verdict::kWorse;
    }
    if (-margin < low && high < margin) {
        return Verdict::kEquivalent;
    }
    return low > 0 || high < 0 ? Verdict::kSmall : Verdict::kInconclusive;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
    constexpr std::array<std::string_view, 6> kNames{"better",           "worse",        "equivalent",
                                                     "not beyond noise", "inconclusive", "no verdict possible"};
    return kNames[static_cast<std::size_t>(verdict)];
}

Comparison compare_arms(std::span<const double> a, std::span<const double> b, const CompareOptions& options) {
    MM_CHECK(a.size() == b.size() && !a.empty(), "runs of A", a.size(), "runs of B", b.size());
    const std::size_t n = a.size();
    const std::vector<double> log_a = logs(a);
    const std::vector<double> log_b = logs(b);
    std::vector<double> differences;
    for (std::size_t i = 0; i < n; ++i) {
        differences.push_back(log_b[i] - log_a[i]);
    }
    const double effect = mean_of(differences);
    Comparison result;
    result.pairs = n;
    result.ratio = std::exp(effect);
    result.ratio_of_medians = median_of(b) / median_of(a);
    result.range_coverage = 1 - std::pow(0.5, static_cast<double>(n) - 1);
    if (n < 2) {
        return result;
    }
    const double count = static_cast<double>(n);
    const double alpha = 1 - options.confidence;
    const double error = std::sqrt(squares_around_mean(differences) / (count - 1) / count);
    const double reach = student_t_critical(alpha, count - 1) * error;
    result.low = std::exp(effect - reach);
    result.high = std::exp(effect + reach);
    result.p = error > 0 ? student_t_two_sided(effect / error, count - 1) : (effect == 0 ? 1 : 0);

    const double run_dof = 2 * (count - 1);
    const double run_sd = std::sqrt((squares_around_mean(log_a) + squares_around_mean(log_b)) / run_dof);
    const double noise = student_t_critical(alpha, run_dof) * std::numbers::sqrt2 * run_sd;
    result.noise_pct = as_percent(noise);
    result.detectable_pct = as_percent((kZ95 + kZ80) * std::numbers::sqrt2 * run_sd / std::sqrt(count));
    if (n >= kPairsForBootstrap) {
        std::tie(result.bootstrap_low, result.bootstrap_high) = bootstrap(a, b, options);
    }
    if (n < options.min_pairs) {
        return result;
    }
    const double sign = options.higher_is_better ? 1 : -1;
    const double near = options.higher_is_better ? effect - reach : -(effect + reach);
    const double far = options.higher_is_better ? effect + reach : -(effect - reach);
    result.verdict = decide(sign * effect, near, far, noise, n, options);

    const bool medians_disagree = (result.ratio_of_medians - 1) * (result.ratio - 1) < 0;
    const bool bootstrap_doubts = result.bootstrap_low && *result.bootstrap_low <= 1 && *result.bootstrap_high >= 1;
    const bool decided = result.verdict == Verdict::kBetter || result.verdict == Verdict::kWorse;
    if (decided && (medians_disagree || bootstrap_doubts)) {
        result.verdict = Verdict::kInconclusive;
    }
    return result;
}

std::string explain(const Comparison& c, const std::string& name_a, const std::string& name_b, const std::string& what,
                    const CompareOptions& options) {
    const double percent = 100 * (c.ratio - 1);
    std::string text = fmt::format("{} has {:.2f}x the {} of {} ({:+.1f} %", name_b, c.ratio, what, name_a, percent);
    if (c.low) {
        text += fmt::format(", {:.0f} % interval {:+.1f} to {:+.1f} %", 100 * options.confidence, 100 * (*c.low - 1),
                            100 * (*c.high - 1));
    }
    text += fmt::format("; {} pair{} of runs). ", c.pairs, c.pairs == 1 ? "" : "s");
    if (c.noise_pct) {
        text += fmt::format("Two runs of the same arm differ by up to {:.1f} %. ", *c.noise_pct);
    }
    switch (c.verdict) {
        case Verdict::kBetter:
        case Verdict::kWorse:
            text += fmt::format("The difference exceeds the noise of repeated runs: {} is {}.", name_b,
                                to_string(c.verdict));
            break;
        case Verdict::kEquivalent:
            text +=
                fmt::format("Any difference is smaller than {:.1f} %: the arms are equivalent.", options.margin_pct);
            break;
        case Verdict::kSmall:
            text += "The difference is consistent but does not exceed the noise of repeated runs or the margin.";
            break;
        case Verdict::kInconclusive:
            text += fmt::format(
                "The difference does not exceed the noise of repeated runs: inconclusive. This many runs "
                "find differences of {:.1f} % or more; repeat more often to see smaller ones.",
                *c.detectable_pct);
            break;
        case Verdict::kTooFewRuns:
            text += fmt::format("No verdict possible: at least {} pairs are needed to tell a difference from noise.",
                                options.min_pairs);
            break;
    }
    const bool decided = c.verdict != Verdict::kTooFewRuns && c.verdict != Verdict::kInconclusive;
    if (decided && c.pairs < kPairsForBootstrap) {
        text += fmt::format(
            " With {} pairs this leans on normally distributed noise; the range of the pairs alone would "
            "cover the truth with {:.0f} %.",
            c.pairs, 100 * c.range_coverage);
    }
    return text;
}

}  // namespace megamoe::lab
