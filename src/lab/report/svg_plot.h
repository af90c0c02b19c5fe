// Small plots as inline SVG: no script, no outside resources.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace megamoe::lab {

// The colour of the k-th arm, the same all over a report, told apart with any kind of colour vision.
std::string_view arm_colour(std::size_t k);

struct Curve {
    std::vector<std::pair<double, double>> points;  // ascending in x
    std::size_t arm = 0;
    std::string title;  // shown when the pointer rests on it
};

struct PlotOptions {
    std::string x_label;
    bool log_x = false;  // points at or below 0 are then left out
};

// Curves over x with y from 0 to 1: cumulative distributions.
std::string curve_plot(std::span<const Curve> curves, const PlotOptions& options);

// One line of dots an arm: every run's value, the median as a bar. The axis begins at 0.
struct DotRow {
    std::string name;
    std::vector<double> values;
};
std::string dot_plot(std::span<const DotRow> rows, const std::string& x_label);

// A cumulative distribution of at most 200 points.
std::vector<std::pair<double, double>> cumulative_curve(std::vector<double> values);

// Text as it may stand in HTML and SVG.
std::string escape_html(std::string_view text);

}  // namespace megamoe::lab
