// Rows of mm_micro: Google Benchmark times them, the table prints them as rates and as shares of a roof.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>

namespace megamoe::bench {

// What one run of a row does.
struct Work {
    double bytes = 0;       // read at least
    double operations = 0;  // two a multiply-add
    double read_roof = 0;   // bytes a second; 0 = unknown
    double op_roof = 0;     // operations a second; 0 = unknown
};

struct Prepared {
    Work work;
    std::function<void()> run;
};

// Registers a row. `prepare` is called when the row's turn comes, so operands need not all be in memory at once.
void add_row(const std::string& name, std::function<Prepared()> prepare);

// Prints one line a row: the shortest of its repetitions.
class Table : public benchmark::BenchmarkReporter {
  public:
    bool ReportContext(const Context& context) override;
    void ReportRuns(const std::vector<Run>& runs) override;
};

// The rows of each kernel family.
void add_gemm_rows();
void add_attend_rows();

}  // namespace megamoe::bench
