#include "lab/report/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lab/stats/distribution.h"

namespace megamoe::lab {
namespace {

using Json = nlohmann::ordered_json;

template <double Throughput::*field>
std::optional<double> throughput(const RunMetrics& m) {
    return m.throughput ? std::optional((*m.throughput).*field) : std::nullopt;
}

template <Summary Latencies::*summary>
std::optional<double> mean(const RunMetrics& m) {
    return (m.latency_ms.*summary).mean;
}

template <Summary Latencies::*summary>
std::optional<double> p99(const RunMetrics& m) {
    return (m.latency_ms.*summary).at(99);
}

constexpr std::array kFigures{
    Figure{"req_s", "request throughput", "req/s", 3, true, &throughput<&Throughput::req_s>},
    Figure{"total_tok_s", "total throughput", "tok/s", 1, true, &throughput<&Throughput::total_tok_s>},
    Figure{"out_tok_s", "output throughput", "tok/s", 1, true, &throughput<&Throughput::out_tok_s>},
    Figure{"ttft_ms", "mean TTFT", "ms", 1, false, &mean<&Latencies::ttft>},
    Figure{"tpot_ms", "mean TPOT", "ms", 2, false, &mean<&Latencies::tpot>},
    Figure{"itl_p99_ms", "P99 ITL", "ms", 2, false, &p99<&Latencies::itl>},
    Figure{"e2el_ms", "mean E2E latency", "ms", 1, false, &mean<&Latencies::e2el>}};

std::optional<double> value_in_block(const Experiment& experiment, std::size_t arm, int block, const Figure& figure) {
    for (const ExperimentRun& run : experiment.runs) {
        if (run.arm == arm && run.block == block && run.checks.valid()) {
            return figure.of(run.measured.metrics);
        }
    }
    return std::nullopt;
}

int last_block(const Experiment& experiment) {
    int last = 0;
    for (const ExperimentRun& run : experiment.runs) {
        last = std::max(last, run.block);
    }
    return last;
}

CompareOptions options_for(const Figure& figure) {
    CompareOptions options;
    options.higher_is_better = figure.higher_is_better;
    return options;
}

std::string cell(const std::optional<double>& value, int decimals) {
    return value ? fmt::format("{:.{}f}", *value, decimals) : std::string("-");
}

std::string completed_cell(const Experiment& experiment, std::size_t arm) {
    std::int64_t ok = 0;
    std::int64_t failed = 0;
    for (const ExperimentRun& run : experiment.runs) {
        if (run.arm == arm) {
            ok += run.measured.metrics.ok;
            failed += run.measured.metrics.failed + run.measured.warmup_failed;
        }
    }
    return fmt::format("{}/{}", ok, failed);
}

Json comparison_json(const Comparison& c) {
    const auto maybe = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
    return {{"pairs", c.pairs},
            {"ratio", c.ratio},
            {"ratio_of_medians", c.ratio_of_medians},
            {"low", maybe(c.low)},
            {"high", maybe(c.high)},
            {"p", maybe(c.p)},
            {"noise_pct", maybe(c.noise_pct)},
            {"detectable_pct", maybe(c.detectable_pct)},
            {"verdict", to_string(c.verdict)}};
}

}  // namespace

std::span<const Figure> figures() {
    return kFigures;
}

std::vector<double> arm_values(const Experiment& experiment, std::size_t arm, const Figure& figure) {
    std::vector<double> values;
    for (int block = 1; block <= last_block(experiment); ++block) {
        if (const auto value = value_in_block(experiment, arm, block, figure)) {
            values.push_back(*value);
        }
    }
    return values;
}

std::optional<double> arm_median(const Experiment& experiment, std::size_t arm, const Figure& figure) {
    const std::vector<double> values = arm_values(experiment, arm, figure);
    return values.empty() ? std::nullopt : std::optional(Distribution(std::span<const double>(values)).quantile(0.5));
}

std::optional<Comparison> compare_figure(const Experiment& experiment, std::size_t a, std::size_t b,
                                         const Figure& figure) {
    std::vector<double> values_a;
    std::vector<double> values_b;
    for (int block = 1; block <= last_block(experiment); ++block) {
        const auto left = value_in_block(experiment, a, block, figure);
        const auto right = value_in_block(experiment, b, block, figure);
        if (left && right && *left > 0 && *right > 0) {
            values_a.push_back(*left);
            values_b.push_back(*right);
        }
    }
    if (values_a.empty()) {
        return std::nullopt;
    }
    return compare_arms(values_a, values_b, options_for(figure));
}

std::vector<std::string> verdict_sentences(const Experiment& experiment) {
    const Figure& primary = figures().front();
    std::vector<std::string> sentences;
    for (std::size_t b = 1; b < experiment.arms.size(); ++b) {
        const std::string& name_a = experiment.arms[0].name;
        const std::string& name_b = experiment.arms[b].name;
        const auto comparison = compare_figure(experiment, 0, b, primary);
        sentences.push_back(
            comparison ? explain(*comparison, name_a, name_b, std::string(primary.label), options_for(primary))
                       : fmt::format("{} and {} have no valid pair of runs: nothing can be said.", name_a, name_b));
    }
    return sentences;
}

std::string experiment_table(const Experiment& experiment) {
    constexpr int kLabel = 28;
    constexpr int kCell = 14;
    std::string text = fmt::format("{:<{}}", "median of the runs", kLabel);
    for (const ExperimentArm& arm : experiment.arms) {
        text += fmt::format("{:>{}}", arm.name, kCell);
    }
    const bool two = experiment.arms.size() == 2;
    text += two ? "    difference (95 % interval)\n" : "\n";
    for (const Figure& figure : figures()) {
        text += fmt::format("{:<{}}", fmt::format("{}, {}", figure.label, figure.unit), kLabel);
        for (std::size_t arm = 0; arm < experiment.arms.size(); ++arm) {
            text += fmt::format("{:>{}}", cell(arm_median(experiment, arm, figure), figure.decimals), kCell);
        }
        const auto c = two ? compare_figure(experiment, 0, 1, figure) : std::nullopt;
        if (c) {
            text += fmt::format("    {:+6.1f} %", 100 * (c->ratio - 1));
            text += c->low ? fmt::format("  ({:+.1f} to {:+.1f})", 100 * (*c->low - 1), 100 * (*c->high - 1)) : "";
        }
        text += "\n";
    }
    text += fmt::format("{:<{}}", "completed / failed", kLabel);
    for (std::size_t arm = 0; arm < experiment.arms.size(); ++arm) {
        text += fmt::format("{:>{}}", completed_cell(experiment, arm), kCell);
    }
    return text + "\n";
}

std::string experiment_json(const Experiment& experiment) {
    Json json = {{"schema", "bench.experiment-result/1"},
                 {"title", experiment.title},
                 {"workload", experiment.workload},
                 {"prompts_sha256", experiment.prompts_sha256}};
    Json& arms = json["arms"] = Json::array();
    for (std::size_t arm = 0; arm < experiment.arms.size(); ++arm) {
        Json values = Json::object();
        for (const Figure& figure : figures()) {
            values[std::string(figure.key)] = arm_values(experiment, arm, figure);
        }
        arms.push_back({{"name", experiment.arms[arm].name},
                        {"server_command", experiment.arms[arm].server_command},
                        {"values_by_run", values}});
    }
    Json& contrasts = json["contrasts"] = Json::array();
    for (std::size_t b = 1; b < experiment.arms.size(); ++b) {
        Json by_figure = Json::object();
        for (const Figure& figure : figures()) {
            const auto comparison = compare_figure(experiment, 0, b, figure);
            by_figure[std::string(figure.key)] = comparison ? comparison_json(*comparison) : Json(nullptr);
        }
        contrasts.push_back({{"a", experiment.arms[0].name},
                             {"b", experiment.arms[b].name},
                             {"primary", figures().front().key},
                             {"metrics", by_figure}});
    }
    json["verdicts"] = verdict_sentences(experiment);
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace megamoe::lab
