#include "lab/report/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lab/stats/distribution.h"

namespace megamoe::lab {
namespace {

constexpr double kWidth = 560;
constexpr double kLeft = 46;
constexpr double kRight = 22;
constexpr double kTop = 10;
constexpr double kBottom = 40;

// A linear or logarithmic x axis and where its labels stand.
class Axis {
  public:
    Axis(double low, double high, bool log, double left = kLeft) : log_(log), left_(left), low_(low), high_(high) {
        if (log_) {
            low_ = std::pow(10, std::floor(std::log10(low)));
            high_ = std::pow(10, std::ceil(std::log10(high) - 1e-9));
            high_ = high_ > low_ ? high_ : 10 * low_;
            for (double tick = low_; tick <= high_ * 1.0001; tick *= 10) {
                ticks_.push_back(tick);
            }
        } else {
            const double step = nice_step((high - low) / 6);
            low_ = std::floor(low / step) * step;
            high_ = std::ceil(high / step) * step;
            for (double k = 0; low_ + k * step <= high_ + step / 2; ++k) {
                ticks_.push_back(low_ + k * step);
            }
        }
    }

    double place(double x) const {
        const double share = log_ ? std::log(x / low_) / std::log(high_ / low_) : (x - low_) / (high_ - low_);
        return left_ + share * (kWidth - left_ - kRight);
    }
    double middle() const { return (left_ + kWidth - kRight) / 2; }
    const std::vector<double>& ticks() const { return ticks_; }

  private:
    static double nice_step(double raw) {
        const double power = std::pow(10, std::floor(std::log10(raw)));
        for (const double factor : {1.0, 2.0, 5.0}) {
            if (raw <= factor * power) {
                return factor * power;
            }
        }
        return 10 * power;
    }

    bool log_;
    double left_;
    double low_;
    double high_;
    std::vector<double> ticks_;
};

std::string open_svg(double height, std::string_view label) {
    return fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">)", kWidth, height,
                       escape_html(label));
}

std::string x_axis(const Axis& axis, double base, std::string_view label) {
    std::string svg;
    for (const double tick : axis.ticks()) {
        const double x = axis.place(tick);
        svg += fmt::format(R"(<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)"
                           R"(<text x="{0:.1f}" y="{3}" text-anchor="middle">{4:.6g}</text>)",
                           x, kTop, base, base + 15, tick);
    }
    svg += fmt::format(R"(<text class="label" x="{}" y="{}" text-anchor="middle">{}</text>)", axis.middle(), base + 33,
                       escape_html(label));
    return svg;
}

}  // namespace

std::string_view arm_colour(std::size_t k) {
    constexpr std::array<std::string_view, 6> kColours{"#0072B2", "#D55E00", "#009E73",
                                                       "#CC79A7", "#E69F00", "#56B4E9"};
    return kColours[k % kColours.size()];
}

std::string escape_html(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::vector<std::pair<double, double>> cumulative_curve(std::vector<double> values) {
    constexpr int kPoints = 200;
    std::vector<std::pair<double, double>> points;
    if (values.empty()) {
        return points;
    }
    const Distribution distribution{std::span<const double>(values)};
    const int count = static_cast<int>(std::min<std::size_t>(kPoints, std::max<std::size_t>(values.size(), 2)));
    for (int k = 0; k < count; ++k) {
        const double fraction = static_cast<double>(k) / (count - 1);
        points.emplace_back(distribution.quantile(fraction), fraction);
    }
    return points;
}

std::string curve_plot(std::span<const Curve> curves, const PlotOptions& options) {
    constexpr double kHeight = 250;
    constexpr double kBase = kHeight - kBottom;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const Curve& curve : curves) {
        for (const auto& [x, y] : curve.points) {
            if (!options.log_x || x > 0) {
                low = std::min(low, x);
                high = std::max(high, x);
            }
        }
    }
    if (!(high >= low)) {
        return "<p class=\"none\">no values</p>";
    }
    const Axis axis(options.log_x ? low : 0, high > 0 ? high : 1, options.log_x);
    std::string svg = open_svg(kHeight, options.x_label) + x_axis(axis, kBase, options.x_label);
    for (const double y : {0.0, 0.25, 0.5, 0.75, 1.0}) {
        const double place = kBase - y * (kBase - kTop);
        svg += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)"
                           R"(<text x="{}" y="{:.1f}" text-anchor="end">{:.0f}%</text>)",
                           kLeft, kWidth - kRight, place, place, kLeft - 6, place + 4, 100 * y);
    }
    for (const Curve& curve : curves) {
        std::string path;
        for (const auto& [x, y] : curve.points) {
            if (!options.log_x || x > 0) {
                path += fmt::format("{:.1f},{:.1f} ", axis.place(x), kBase - y * (kBase - kTop));
            }
        }
        svg += fmt::format(R"(<polyline points="{}" stroke="{}"><title>{}</title></polyline>)", path,
                           arm_colour(curve.arm), escape_html(curve.title));
    }
    return svg + "</svg>";
}

std::string dot_plot(std::span<const DotRow> rows, const std::string& x_label) {
    constexpr double kRowHeight = 34;
    const double base = kTop + kRowHeight * static_cast<double>(rows.size());
    constexpr double kLetter = 6.5;
    double high = 0;
    double left = kLeft;
    for (const DotRow& row : rows) {
        left = std::max(left, kLetter * static_cast<double>(row.name.size()) + 12);
        for (const double value : row.values) {
            high = std::max(high, value);
        }
    }
    if (high <= 0) {
        return "<p class=\"none\">no values</p>";
    }
    const Axis axis(0, high * 1.02, false, left);
    std::string svg = open_svg(base + kBottom, x_label) + x_axis(axis, base, x_label);
    for (std::size_t k = 0; k < rows.size(); ++k) {
        const double y = kTop + kRowHeight * (static_cast<double>(k) + 0.5);
        svg += fmt::format(R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", left - 6, y + 4,
                           escape_html(rows[k].name));
        if (rows[k].values.empty()) {
            continue;
        }
        const double median = Distribution(std::span<const double>(rows[k].values)).quantile(0.5);
        svg += fmt::format(R"(<rect x="{}" y="{:.1f}" width="{:.1f}" height="14" fill="{}" opacity="0.25"/>)", left,
                           y - 7, axis.place(median) - left, arm_colour(k));
        for (const double value : rows[k].values) {
            svg += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="{}"><title>{:.4g}</title></circle>)",
                               axis.place(value), y, arm_colour(k), value);
        }
    }
    return svg + "</svg>";
}

}  // namespace megamoe::lab
