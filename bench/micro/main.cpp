// mm_micro: the CPU kernels on one core beside the roofs measured in the same run. Takes Google Benchmark's flags, such
// as --benchmark_filter=fp4.
#include <benchmark/benchmark.h>

#include <cstdio>

#include "bench/micro/table.h"
#include "bench/roofs/roofs.h"
#include "compute/cpu/isa.h"

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    std::printf("isa %s; one core reads %.1f GB/s; oneDNN bf16 product 256 x 2048 x 2048: %.0f GFLOP/s\n\n",
                megamoe::cpu::name(megamoe::cpu::detect_isa()).data(), megamoe::bench::stream_read_rate() * 1e-9,
                megamoe::bench::bf16_matmul_rate(256, 2048, 2048).value_or(0) * 1e-9);
    megamoe::bench::add_gemm_rows();
    megamoe::bench::add_attend_rows();
    megamoe::bench::Table table;
    benchmark::RunSpecifiedBenchmarks(&table);
    return 0;
}
