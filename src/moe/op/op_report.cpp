#include "moe/op/op_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compute/cpu/isa.h"
#include "moe/op/op_timing.h"

namespace megamoe::moe::op {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::optional<double>& number) {
    return number ? Json(*number) : Json();
}

std::string percent(const std::optional<double>& fraction) {
    return fraction ? fmt::format("{:.0f}", *fraction * 100) : "-";
}

Json json_of(const BenchRow& row) {
    Json stages;
    for (std::size_t s = 0; s < row.stages_us.size(); ++s) {
        stages[kStageNames[s]] = row.stages_us[s];
    }
    return {{"geometry", row.geometry.name},
            {"format", name_of(row.format)},
            {"routing", row.routing},
            {"backend", name(row.backend)},
            {"ranks", row.ranks},
            {"threads_per_rank", row.threads_per_rank},
            {"tokens_per_rank", row.tokens},
            {"visited_experts", row.visited_experts},
            {"rows_per_expert", row.rows_an_expert},
            {"bytes", row.bytes},
            {"operations", row.operations},
            {"repeats", row.repeats},
            {"median_us", row.median_us},
            {"fastest_us", row.fastest_us},
            {"skew_us", row.skew_us},
            {"stages_us", stages},
            {"bytes_per_second", row.bytes_a_second(row.median_us)},
            {"operations_per_second", row.operations_a_second(row.median_us)},
            {"roof", row.roof},
            {"roof_per_second", row.roof_rate > 0 ? Json(row.roof_rate) : Json()},
            {"roof_fraction", json_of(row.roof_fraction(row.median_us))},
            {"fastest_roof_fraction", json_of(row.roof_fraction(row.fastest_us))},
            {"speedup_over_standard", row.speedup}};
}

}  // namespace

std::string check_header() {
    return fmt::format("{:6} {:10} {:>5} {:>17} {:>12}\n", "format", "backend", "ranks", "bits", "error");
}

std::string check_line(const CheckRow& row) {
    const std::string bits = row.different == 0 ? "equal" : fmt::format("{} differ", row.different);
    return fmt::format("{:6} {:10} {:5} {:>17} {:12.2e}{}\n", name_of(row.format), name(row.backend), row.ranks, bits,
                       row.error, row.passed() ? "" : "  FAILED");
}

std::string bench_header() {
    std::string text =
        fmt::format("{:11} {:4} {:14} {:>5} {:>8} {:9} {:>10} {:>10} {:>8} {:>8} {:>6} {:>6} {:12} {:>6} {:>8} |",
                    "geometry", "fmt", "routing", "T", "rows/exp", "backend", "us", "best us", "GB/s", "GFLOP/s",
                    "% roof", "best %", "roof", "x std", "skew us");
    for (const char* stage : kStageNames) {
        text += fmt::format(" {:>9}", stage);
    }
    return text + '\n';
}

std::string bench_line(const BenchRow& row) {
    std::string text = fmt::format(
        "{:11} {:4} {:14} {:5} {:8.1f} {:9} {:10.1f} {:10.1f} {:8.2f} {:8.1f} {:>6} {:>6} {:12} {:6.2f} {:8.1f} |",
        row.geometry.name, name_of(row.format), row.routing, row.tokens, row.rows_an_expert, name(row.backend),
        row.median_us, row.fastest_us, row.bytes_a_second(row.median_us) * 1e-9,
        row.operations_a_second(row.median_us) * 1e-9, percent(row.roof_fraction(row.median_us)),
        percent(row.roof_fraction(row.fastest_us)), row.roof, row.speedup, row.skew_us);
    for (const double stage : row.stages_us) {
        text += fmt::format(" {:9.1f}", stage);
    }
    return text + '\n';
}

std::string bench_json(const BenchOptions& o, std::span<const BenchRow> rows) {
    Json json = {{"tool", "megamoe op bench"},
                 {"isa", cpu::name(o.isa)},
                 {"pinned", ranks_have_cores(o.num_ranks, o.threads_per_rank)},
                 {"hidden", o.geometry.hidden},
                 {"inter", o.geometry.inter},
                 {"experts", o.geometry.num_experts},
                 {"top_k", o.geometry.top_k},
                 {"seed", o.seed},
                 {"stages", "mean over the ranks of each stage's median"},
                 {"rows", Json::array()}};
    for (const BenchRow& row : rows) {
        json["rows"].push_back(json_of(row));
    }
    return json.dump(2) + '\n';
}

}  // namespace megamoe::moe::op
