#include "bench/micro/table.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "bench/roofs/best_time.h"

namespace megamoe::bench {
namespace {

double best_of(const std::vector<double>& seconds) {
    return *std::min_element(seconds.begin(), seconds.end());
}

std::string percent(double rate, double roof) {
    if (roof <= 0) {
        return "-";
    }
    char text[16];
    std::snprintf(text, sizeof text, "%.0f %%", 100 * rate / roof);
    return text;
}

// Runs in a row that take about a millisecond: long for the clock, short enough to escape a busy neighbour at times.
int batch_of(const Prepared& row) {
    constexpr double kSeconds = 1e-3;
    const double one = best_seconds(0, row.run);
    return std::max(1, static_cast<int>(kSeconds / one));
}

}  // namespace

void add_row(const std::string& name, std::function<Prepared()> prepare) {
    constexpr int kRepetitions = 60;
    // Google Benchmark calls the function for every repetition: the operands live from the first until the next row's.
    static std::shared_ptr<Prepared> current;
    static std::string current_name;
    benchmark::RegisterBenchmark(name.c_str(),
                                 [name, prepare = std::move(prepare)](benchmark::State& state) {
                                     if (current_name != name) {
                                         current.reset();
                                         current = std::make_shared<Prepared>(prepare());
                                         current_name = name;
                                     }
                                     const int batch = batch_of(*current);
                                     for (auto _ : state) {
                                         for (int i = 0; i < batch; ++i) {
                                             current->run();
                                         }
                                     }
                                     state.counters["batch"] = batch;
                                     state.counters["bytes"] = current->work.bytes;
                                     state.counters["operations"] = current->work.operations;
                                     state.counters["read_roof"] = current->work.read_roof;
                                     state.counters["op_roof"] = current->work.op_roof;
                                 })
        ->UseRealTime()
        ->Iterations(1)
        ->Repetitions(kRepetitions)
        ->ComputeStatistics("best", best_of)
        ->ReportAggregatesOnly();
}

bool Table::ReportContext(const Context&) {
    std::printf("%-44s %10s %8s %8s %9s %8s\n", "row", "us", "GB/s", "of read", "GFLOP/s", "of bf16");
    return true;
}

void Table::ReportRuns(const std::vector<Run>& runs) {
    for (const Run& run : runs) {
        if (run.aggregate_name != "best") {
            continue;
        }
        const auto counter = [&run](const char* name) { return run.counters.at(name).value; };
        const double seconds =
            run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit) / counter("batch");
        const double read = counter("bytes") / seconds;
        const double rate = counter("operations") / seconds;
        std::printf("%-44s %10.1f %8.1f %8s %9.0f %8s\n", run.run_name.function_name.c_str(), seconds * 1e6,
                    read * 1e-9, percent(read, counter("read_roof")).c_str(), rate * 1e-9,
                    percent(rate, counter("op_roof")).c_str());
        std::fflush(stdout);
    }
}

}  // namespace megamoe::bench
