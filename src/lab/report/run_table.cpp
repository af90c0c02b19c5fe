#include "lab/report/run_table.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace megamoe::lab {
namespace {

constexpr int kLabelWidth = 34;

std::string row(std::string_view label, std::string_view value) {
    return fmt::format("{:<{}}{:>14}\n", label, kLabelWidth, value);
}

std::string figure(const std::optional<double>& value, int decimals = 2) {
    return value ? fmt::format("{:.{}f}", *value, decimals) : std::string("-");
}

std::string title(std::string_view text) {
    return fmt::format("\n{:=^{}}\n", fmt::format(" {} ", text), kLabelWidth + 14);
}

std::string latency_table(const Latencies& latency) {
    const std::array<std::pair<std::string_view, const Summary*>, 5> kRows{{{"TTFT", &latency.ttft},
                                                                            {"TPOT", &latency.tpot},
                                                                            {"ITL", &latency.itl},
                                                                            {"ICL (gap between chunks)", &latency.icl},
                                                                            {"E2EL", &latency.e2el}}};
    std::string text = fmt::format("{:<26}{:>11}{:>11}", "latency, ms", "mean", "median");
    for (const Percentile& p : latency.ttft.percentiles) {
        text += p.percent == 50 ? std::string() : fmt::format("{:>11}", fmt::format("p{}", p.percent));
    }
    text += "\n";
    for (const auto& [name, summary] : kRows) {
        text += fmt::format("{:<26}{:>11}{:>11}", name, figure(summary->mean), figure(summary->median));
        for (const Percentile& p : summary->percentiles) {
            text += p.percent == 50 ? std::string() : fmt::format("{:>11}", figure(p.value));
        }
        text += "\n";
    }
    return text;
}

std::vector<std::string> doubts(const Measured& run, const MeasureOptions& options) {
    const RunChecks checks = check_run(run, options);
    const RunMetrics& m = run.metrics;
    std::vector<std::string> out;
    if (!checks.same_prompts) {
        out.emplace_back("what was sent differs from the manifest");
    }
    if (!m.counted_by_server) {
        out.emplace_back("the server sent no token counts: output tokens are what was asked for, not what came");
    } else if (!checks.lengths) {
        out.push_back(
            fmt::format("the server counted another prompt length than the manifest in {} requests", m.in_mismatch));
    }
    if (!checks.concurrency) {
        out.push_back(
            fmt::format("concurrency {} was asked for, {} was reached", options.max_concurrency, m.peak_concurrency));
    }
    if (!checks.client_fast) {
        out.push_back(fmt::format(
            "times may be late by {1:.1f} ms: the client's thread was that late in 1 % of cases (CPU share {0:.0f} %)",
            100 * run.pass.self.cpu_share, run.pass.self.loop_lag_p99_ms));
    }
    if (m.steady && m.steady->fraction < 0.6) {
        out.push_back(
            fmt::format("only {:.0f} % of the run was at full concurrency: ramp and drain weigh in the throughput",
                        100 * m.steady->fraction));
    }
    if (m.itl_basis == ItlBasis::kUnknown && m.ok > 0) {
        out.emplace_back(
            "chunks hold several tokens and the server does not count along: ITL unknown, see ICL and TPOT "
            "(--stream-usage continuous may help)");
    }
    if (run.partial_manifest) {
        out.emplace_back("only a part of the manifest was used");
    }
    return out;
}

}  // namespace

std::string run_table(const Measured& run, const MeasureOptions& options, const Manifest& manifest) {
    const RunMetrics& m = run.metrics;
    const bool open = options.arrivals || options.trace_arrivals;
    std::string text = title("result");
    text += row("successful requests", fmt::format("{}", m.ok));
    text += row("failed requests", fmt::format("{}", m.failed));
    text += row("duration, s", m.throughput ? figure(m.duration_s) : "-");
    text += row("input tokens", fmt::format("{}", m.in_tokens));
    text += row("output tokens", fmt::format("{}", m.out_tokens));
    if (m.throughput) {
        text += row("request throughput, req/s", figure(m.throughput->req_s, 3));
        text += row("input throughput, tok/s", figure(m.throughput->in_tok_s));
        text += row("output throughput, tok/s", figure(m.throughput->out_tok_s));
        text += row("total throughput, tok/s", figure(m.throughput->total_tok_s));
    }
    if (m.steady) {
        text += row("steady total throughput, tok/s", figure(m.steady->throughput.total_tok_s));
        text += row("steady share of the run", fmt::format("{:.0f} %", 100 * m.steady->fraction));
    }
    text += row("concurrency, mean / peak", fmt::format("{:.1f} / {}", m.mean_concurrency, m.peak_concurrency));
    if (m.goodput_req_s) {
        text += row("goodput, req/s", figure(m.goodput_req_s, 3));
    }
    text += "\n" + latency_table(m.latency_ms);
    text +=
        open ? "latencies start when a request was sent; ttft_user and e2el_user in result.json start at its arrival\n"
             : "closed loop: latency at fixed concurrency, not at fixed load\n";
    text += fmt::format("prompts {}\n", manifest.prompts_sha256);
    for (const std::string& doubt : doubts(run, options)) {
        text += "note: " + doubt + "\n";
    }
    return text;
}

std::string failure_list(const Measured& run) {
    constexpr int kShown = 20;
    std::string text;
    int shown = 0;
    std::int64_t total = 0;
    for (const std::vector<RequestRecord>* records : {&run.warmup, &run.pass.records}) {
        for (const RequestRecord& record : *records) {
            if (record.ok() || record.outcome == Outcome::kSkipped) {
                continue;
            }
            if (++total; shown < kShown) {
                ++shown;
                text +=
                    fmt::format("  {} {}: {}\n", record.id, to_string(record.outcome), record.detail.substr(0, 300));
            }
        }
    }
    return total == 0 ? text : fmt::format("{} request(s) failed:\n{}", total, text);
}

}  // namespace megamoe::lab
