#include "lab/report/html_report.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lab/report/svg_plot.h"
#include "lab/stats/request_metrics.h"

namespace megamoe::lab {
namespace {

constexpr std::string_view kStyle = R"(
:root{--ink:#1b1f24;--dim:#5c6570;--line:#d8dde3;--card:#f6f8fa}
body{font:15px/1.5 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;color:var(--ink);max-width:1180px;margin:2rem auto;padding:0 1.2rem}
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}
p{margin:.4rem 0}.dim,.none{color:var(--dim)}
.verdict{background:var(--card);border-left:4px solid #0072B2;padding:.8rem 1rem;margin:1rem 0}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{font-weight:600;color:var(--dim);white-space:normal;vertical-align:bottom}
.scroll{overflow-x:auto}.bad{text-decoration:line-through;color:var(--dim)}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:1.2rem}
figure{margin:0}figcaption{font-weight:600;margin-bottom:.2rem}
svg{width:100%;height:auto}svg text{font-size:11px;fill:var(--dim)}svg .label{fill:var(--ink)}
.grid{stroke:var(--line);stroke-width:1}polyline{fill:none;stroke-width:1.8;opacity:.75}
.key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.35em}
pre{background:var(--card);padding:.7rem 1rem;overflow-x:auto;font-size:13px}
)";

std::string arm_label(const Experiment& experiment, std::size_t arm) {
    return fmt::format(R"(<span class="key" style="background:{}"></span>{})", arm_colour(arm),
                       escape_html(experiment.arms[arm].name));
}

std::string number(const std::optional<double>& value, int decimals) {
    return value ? fmt::format("{:.{}f}", *value, decimals) : std::string("&ndash;");
}

std::string header(const Experiment& experiment) {
    std::string html = fmt::format("<h1>{}</h1><p class=\"dim\">{}<br>{}</p>", escape_html(experiment.title),
                                   escape_html(experiment.workload), escape_html(experiment.machine));
    html += "<div class=\"verdict\">";
    for (const std::string& sentence : verdict_sentences(experiment)) {
        html += "<p>" + escape_html(sentence) + "</p>";
    }
    html += "</div>";
    return html;
}

std::string comparison_table(const Experiment& experiment) {
    std::string html = "<h2>Arms</h2><div class=\"scroll\"><table><tr><th>median of the runs</th>";
    for (std::size_t arm = 0; arm < experiment.arms.size(); ++arm) {
        html += "<th>" + arm_label(experiment, arm) + "</th>";
    }
    for (std::size_t arm = 1; arm < experiment.arms.size(); ++arm) {
        html += fmt::format("<th>{} against {}</th><th>95 % interval</th><th>verdict</th>",
                            escape_html(experiment.arms[arm].name), escape_html(experiment.arms[0].name));
    }
    html += "</tr>";
    for (const Figure& figure : figures()) {
        html += fmt::format("<tr><td>{}, {}</td>", figure.label, figure.unit);
        for (std::size_t arm = 0; arm < experiment.arms.size(); ++arm) {
            html += "<td>" + number(arm_median(experiment, arm, figure), figure.decimals) + "</td>";
        }
        for (std::size_t arm = 1; arm < experiment.arms.size(); ++arm) {
            const auto c = compare_figure(experiment, 0, arm, figure);
            html +=
                c ? fmt::format("<td>{:+.1f} %</td><td>{}</td><td>{}</td>", 100 * (c->ratio - 1),
                                c->low ? fmt::format("{:+.1f} to {:+.1f} %", 100 * (*c->low - 1), 100 * (*c->high - 1))
                                       : std::string("&ndash;"),
                                to_string(c->verdict))
                  : std::string("<td>&ndash;</td><td>&ndash;</td><td>no valid data</td>");
        }
        html += "</tr>";
    }
    return html +
           "</table></div><p class=\"dim\">Only request throughput decides; the other rows describe. better and worse "
           "are meant "
           "for the user: a lower latency is better.</p>";
}

// The values of one latency over all good requests of a run.
template <class Collect>
std::vector<Curve> curves(const Experiment& experiment, const Collect& collect) {
    std::vector<Curve> out;
    for (const ExperimentRun& run : experiment.runs) {
        std::vector<double> values;
        for (const RequestRecord& record : run.measured.pass.records) {
            if (record.ok()) {
                collect(request_metrics(record), values);
            }
        }
        out.push_back({.points = cumulative_curve(std::move(values)),
                       .arm = run.arm,
                       .title = fmt::format("{}, repeat {}", experiment.arms[run.arm].name, run.block)});
    }
    return out;
}

std::string figure_html(std::string_view caption, const std::string& plot) {
    return fmt::format("<figure><figcaption>{}</figcaption>{}</figure>", caption, plot);
}

std::string plots(const Experiment& experiment) {
    std::vector<DotRow> rows;
    for (std::size_t arm = 0; arm < experiment.arms.size(); ++arm) {
        rows.push_back({.name = experiment.arms[arm].name, .values = arm_values(experiment, arm, figures().front())});
    }
    const auto add = [](const std::optional<double>& value, std::vector<double>& values) {
        if (value) {
            values.push_back(*value);
        }
    };
    const auto ttft = curves(experiment, [&](const RequestMetrics& m, auto& values) { add(m.ttft, values); });
    const auto tpot = curves(experiment, [&](const RequestMetrics& m, auto& values) { add(m.tpot, values); });
    const auto icl = curves(experiment, [&](const RequestMetrics& m, auto& values) {
        values.insert(values.end(), m.icl.begin(), m.icl.end());
    });
    std::string html = "<h2>Distributions</h2><p class=\"dim\">One curve or dot a run.";
    for (std::size_t arm = 0; arm < experiment.arms.size(); ++arm) {
        html += " &nbsp; " + arm_label(experiment, arm);
    }
    html += "</p><div class=\"plots\">";
    html += figure_html("Request throughput of each run", dot_plot(rows, "requests per second"));
    html += figure_html("Time to first token", curve_plot(ttft, {.x_label = "milliseconds"}));
    html += figure_html("Time per output token", curve_plot(tpot, {.x_label = "milliseconds"}));
    html += figure_html("Gaps between tokens (the right-hand step is waiting for somebody else's prompt)",
                        curve_plot(icl, {.x_label = "milliseconds, logarithmic", .log_x = true}));
    return html + "</div>";
}

std::string run_list(const Experiment& experiment) {
    std::string html =
        "<h2>Every run, in the order they ran</h2><div class=\"scroll\"><table><tr><th>arm</th><th>repeat</th>";
    for (const Figure& figure : figures()) {
        html += fmt::format("<th>{}, {}</th>", figure.label, figure.unit);
    }
    html += "<th>ok / failed</th><th>start-up, s</th></tr>";
    for (const ExperimentRun& run : experiment.runs) {
        html += fmt::format("<tr{}><td>{}</td><td>{}</td>", run.checks.valid() ? "" : " class=\"bad\"",
                            arm_label(experiment, run.arm), run.block);
        for (const Figure& figure : figures()) {
            html += "<td>" + number(figure.of(run.measured.metrics), figure.decimals) + "</td>";
        }
        html += fmt::format("<td>{} / {}</td><td>{:.1f}</td></tr>", run.measured.metrics.ok,
                            run.measured.metrics.failed + run.measured.warmup_failed, run.ready_s);
    }
    return html + "</table></div><p class=\"dim\">A struck-out run failed a check and is in no figure above.</p>";
}

std::string method(const Experiment& experiment) {
    std::string html =
        "<h2>How it was measured</h2><p>Every run is a fresh server process. One repeat holds a run of each arm, and "
        "the order of the arms turns round from repeat to repeat, so that slow drift cancels. All arms replayed the "
        "same prompts:</p><pre>prompts_sha256 " +
        escape_html(experiment.prompts_sha256) + "\nmanifest " + escape_html(experiment.manifest_path) +
        "</pre><p>The run is the unit: a difference is judged by the spread over repeats (t interval of paired "
        "log ratios), never by the number of requests. Closed loop: latency at fixed concurrency, not at fixed "
        "load.</p><pre>";
    for (const ExperimentArm& arm : experiment.arms) {
        html += "# " + escape_html(arm.name) + "\n" + escape_html(arm.server_command) + "\n";
    }
    return html + "</pre>";
}

}  // namespace

std::string html_report(const Experiment& experiment) {
    return fmt::format(
               R"(<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">)"
               "<title>{}</title><style>{}</style></head><body>",
               escape_html(experiment.title), kStyle) +
           header(experiment) + comparison_table(experiment) + plots(experiment) + run_list(experiment) +
           method(experiment) + "</body></html>\n";
}

}  // namespace megamoe::lab
