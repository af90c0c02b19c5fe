// The runs of several arms over one manifest, and what they say about each other.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/report/run_facts.h"
#include "lab/stats/compare.h"

namespace megamoe::lab {

struct ExperimentArm {
    std::string name;
    std::string server_command;  // quoted
};

struct ExperimentRun {
    std::size_t arm = 0;
    int block = 0;           // repeats count from 1: one run of each arm, close together in time
    int order_in_block = 0;  // from 1
    double ready_s = 0;      // from start to ready
    Measured measured;
    RunChecks checks;
};

struct Experiment {
    std::string title;
    std::string workload;  // in words
    std::vector<ExperimentArm> arms;
    std::vector<ExperimentRun> runs;  // in the order they ran
    std::string prompts_sha256;
    std::string manifest_path;
    std::string machine;  // in words
};

// A figure of a run, with how to show it.
struct Figure {
    std::string_view key;    // "req_s"
    std::string_view label;  // "request throughput"
    std::string_view unit;
    int decimals = 0;
    bool higher_is_better = false;
    std::optional<double> (*of)(const RunMetrics&) = nullptr;
};
// The first one is the primary metric.
std::span<const Figure> figures();

// Values of the valid runs of one arm, in block order.
std::vector<double> arm_values(const Experiment& experiment, std::size_t arm, const Figure& figure);
std::optional<double> arm_median(const Experiment& experiment, std::size_t arm, const Figure& figure);

// Arm `b` against arm `a` over the blocks in which both are valid; none if there is no such block.
std::optional<Comparison> compare_figure(const Experiment& experiment, std::size_t a, std::size_t b,
                                         const Figure& figure);

// The primary comparison of each arm with the first one, a sentence each.
std::vector<std::string> verdict_sentences(const Experiment& experiment);

// The table for the terminal.
std::string experiment_table(const Experiment& experiment);

// Figures and comparisons for programs.
std::string experiment_json(const Experiment& experiment);

}  // namespace megamoe::lab
