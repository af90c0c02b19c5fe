// The MoE operator on one device: `op_cuda check` against the oracle, `op_cuda bench` against the device's roof.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "world.h"

namespace megamoe::op_cuda {
namespace {

using cuda::ExpertFormat;
using cuda::MegaMoeVersion;

// A sum that lands on the other side of a BF16 or FP8 rounding moves an activation by up to 6 %; in a handful of rows a
// few of those show. One lost or swapped row gives 0.1 and more.
constexpr double kTolerance = 2e-2;

const char* name_of(MegaMoeVersion v) {
    return v == MegaMoeVersion::kOverlapped ? "mega2" : v == MegaMoeVersion::kPhased ? "mega1" : "standard";
}

class Checker {
  public:
    // Runs `launches` times on fresh outputs; all must agree bit for bit.
    void run(World& world, MegaMoeVersion version, const std::string& label, std::int32_t oracle_rows,
             int launches = 2) {
        std::vector<std::vector<float>> first;
        bool same = true;
        for (int i = 0; i < launches; ++i) {
            world.poison_outputs(nullptr);
            check(world.launch(version, 0, nullptr), "launch");
            check(cudaDeviceSynchronize(), "run");
            for (std::int32_t r = 0; r < world.options().shape.num_ranks; ++r) {
                const std::vector<float> out = world.output(r);
                if (i == 0) {
                    first.push_back(out);
                } else {
                    same = same && (out.empty() || std::memcmp(out.data(), first[static_cast<std::size_t>(r)].data(),
                                                               out.size() * 4) == 0);
                }
            }
        }
        std::uint32_t status = 0;
        for (std::int32_t r = 0; r < world.options().shape.num_ranks; ++r) {
            const mega::Control control = world.control(r);
            status |= control.status;
            if (control.status != 0) {
                std::printf("    rank %d: status %u edge %u peer %u epoch %u\n", r, control.status, control.detail[0],
                            control.detail[1], control.detail[2]);
            }
        }
        const double error = world.error(oracle_rows);
        const bool good = error < kTolerance && same && status == 0;
        failures_ += good ? 0 : 1;
        std::printf("%-4s %-8s %-58s error %.2e %s\n", good ? "ok" : "FAIL", name_of(version), label.c_str(), error,
                    same ? "" : "NOT REPEATABLE");
        std::fflush(stdout);
        if (status != 0) {
            std::exit(1);
        }
    }
    int failures() const { return failures_; }

  private:
    int failures_ = 0;
};

std::string text(const char* format, auto... values) {
    char buffer[256];
    std::snprintf(buffer, sizeof buffer, format, values...);
    return buffer;
}

mega::Shape small_shape(std::int32_t ranks) {
    return {.num_ranks = ranks, .num_experts = 8 * ranks, .top_k = 4, .hidden = 512, .inter = 384, .max_rows = 300};
}

void check_small(Checker& checker) {
    for (const ExpertFormat format : {ExpertFormat::kMxfp4, ExpertFormat::kFp8}) {
        for (const std::int32_t tokens : {8, 16, 24, 32, 48, 64, 80, 96, 112}) {
            for (const std::int32_t ranks : {1, 4}) {
                WorldOptions o;
                o.shape = small_shape(ranks);
                o.format = format;
                o.config = {.tokens = tokens, .unit_blocks = 2, .lag = 3};
                World world(o);
                world.set_inputs(std::vector<std::int32_t>(static_cast<std::size_t>(ranks), tokens < 64 ? 67 : 300),
                                 Routing::kUniform, 5);
                const std::string label =
                    text("%s N=%d R=%d", format == ExpertFormat::kFp8 ? "fp8" : "mxfp4", tokens, ranks);
                checker.run(world, MegaMoeVersion::kOverlapped, label, 16);
                if (tokens == 32 || tokens == 112) {
                    checker.run(world, MegaMoeVersion::kPhased, label, 16);
                    checker.run(world, MegaMoeVersion::kStandard, label, 16);
                }
            }
        }
    }
}

void check_protocol(Checker& checker) {
    for (const std::int32_t ranks : {1, 2, 4, 8}) {
        WorldOptions o;
        o.shape = small_shape(ranks);
        o.config = {.tokens = 16, .unit_blocks = 2, .lag = 2, .ring_blocks = 10, .prefetch_panels = 4};
        World world(o);
        o.config.ring_blocks = 0;
        o.config.prefetch_panels = 0;
        World whole(o);  // the same experts without a ring
        const auto n = static_cast<std::size_t>(ranks);
        std::vector<std::int32_t> uneven(n);
        for (std::size_t r = 0; r < n; ++r) {
            uneven[r] = r % 3 == 0 ? 0 : static_cast<std::int32_t>(300 - 37 * r);
        }
        if (ranks == 1) {
            uneven[0] = 299;
        }
        const auto one = [&](const char* what, const std::vector<std::int32_t>& rows, Routing routing) {
            world.set_inputs(rows, routing, 11);
            checker.run(world, MegaMoeVersion::kOverlapped, text("R=%d ring, %s", ranks, what), 6);
            whole.set_inputs(rows, routing, 11);
            check(whole.launch(MegaMoeVersion::kOverlapped, 0, nullptr), "launch");
            check(cudaDeviceSynchronize(), "run");
            for (std::int32_t r = 0; r < ranks; ++r) {
                if (world.output(r) != whole.output(r)) {
                    std::printf("FAIL rank %d differs from the run without a ring: %s\n", r, what);
                }
            }
        };
        one("uneven rows", uneven, Routing::kUniform);
        one("no rows at all", std::vector<std::int32_t>(n, 0), Routing::kUniform);
        one("one row", std::vector<std::int32_t>(n, 1), Routing::kUniform);
        one("skewed", std::vector<std::int32_t>(n, 113), Routing::kSkewed);
        one("one expert", std::vector<std::int32_t>(n, 77), Routing::kOneExpert);
        one("masked choices", std::vector<std::int32_t>(n, 50), Routing::kWithHoles);
        world.set_epoch(0xFFFFFFFEU);
        one("epoch wraps", std::vector<std::int32_t>(n, 50), Routing::kUniform);
        one("epoch wrapped", std::vector<std::int32_t>(n, 50), Routing::kUniform);
    }
}

void check_fuzz(Checker& checker, int launches) {
    std::srand(7);
    for (const std::int32_t ranks : {2, 8}) {
        WorldOptions o;
        o.shape = {
            .num_ranks = ranks, .num_experts = 4 * ranks, .top_k = 3, .hidden = 256, .inter = 128, .max_rows = 100};
        o.config = {.tokens = 8, .unit_blocks = 2, .lag = 1, .ring_blocks = 6};
        World world(o);
        world.set_delay(3000);
        bool good = true;
        for (int i = 0; i < launches && good; ++i) {
            std::vector<std::int32_t> rows;
            for (std::int32_t r = 0; r < ranks; ++r) {
                rows.push_back(std::rand() % 4 == 0 ? 0 : std::rand() % 101);
            }
            const bool fresh = i % 50 == 0;
            if (fresh) {
                world.set_inputs(std::vector<std::int32_t>(static_cast<std::size_t>(ranks), 100), Routing::kWithHoles,
                                 static_cast<std::uint32_t>(i));
            }
            world.set_rows(rows);
            if (fresh) {
                world.poison_outputs(nullptr);
            }
            check(world.launch(MegaMoeVersion::kOverlapped, 0, nullptr), "launch");
            if (fresh) {
                check(cudaDeviceSynchronize(), "run");
                const double error = world.error(100);
                good = error < kTolerance;
            }
        }
        check(cudaDeviceSynchronize(), "run");
        checker.run(world, MegaMoeVersion::kOverlapped,
                    text("R=%d after %d launches with random delays%s", ranks, launches, good ? "" : " BAD"), 100);
    }
}

void check_graph(Checker& checker) {
    WorldOptions o;
    o.shape = small_shape(2);
    o.config = {.tokens = 32, .unit_blocks = 2, .lag = 3};
    World world(o);
    world.set_inputs({250, 250}, Routing::kUniform, 3);
    cudaStream_t stream{};
    check(cudaStreamCreate(&stream), "stream");
    cudaGraph_t graph{};
    cudaGraphExec_t executable{};
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    check(world.launch(MegaMoeVersion::kOverlapped, 0, stream), "launch");
    check(cudaStreamEndCapture(stream, &graph), "capture");
    check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
    bool good = true;
    for (const std::int32_t rows : {250, 0, 3, 129, 250}) {
        world.set_rows({rows, 250 - rows});
        world.poison_outputs(stream);
        check(cudaGraphLaunch(executable, stream), "replay");
        check(cudaStreamSynchronize(stream), "replay");
        good = good && world.error(8) < kTolerance;
    }
    checker.run(world, MegaMoeVersion::kOverlapped, text("graph replay with changing rows%s", good ? "" : " BAD"), 8);
}

void check_clamp_and_spread(Checker& checker) {
    for (const std::int32_t spread : {15, 20}) {
        WorldOptions o;
        o.shape = small_shape(1);
        o.config = {.tokens = 32};
        o.exponent_spread = spread;
        o.clamp = INFINITY;
        World world(o);
        world.set_inputs({64}, Routing::kUniform, 9);
        checker.run(
            world, MegaMoeVersion::kOverlapped,
            text("no clamp, exponents span %u, %u groups rounded", world.fold().max_span, world.fold().deep_groups),
            16);
    }
}

struct BenchCase {
    const char* name;
    mega::Shape shape;
};

double median(std::vector<float> v) {
    std::sort(v.begin(), v.end());
    return static_cast<double>(v[v.size() / 2]);
}

double measure(World& world, MegaMoeVersion version, int repeats) {
    cudaStream_t stream{};
    check(cudaStreamCreate(&stream), "stream");
    const std::int32_t sets = world.options().weight_sets;
    std::vector<cudaEvent_t> events(static_cast<std::size_t>(repeats) + 1);
    for (auto& e : events) {
        check(cudaEventCreate(&e), "event");
    }
    for (int i = 0; i < 3; ++i) {
        check(world.launch(version, i % sets, stream), "warm up");
    }
    check(cudaEventRecord(events[0], stream), "event");
    for (int i = 0; i < repeats; ++i) {
        check(world.launch(version, i % sets, stream), "launch");
        check(cudaEventRecord(events[static_cast<std::size_t>(i) + 1], stream), "event");
    }
    check(cudaStreamSynchronize(stream), "run");
    std::vector<float> us;
    for (int i = 0; i < repeats; ++i) {
        float ms = 0;
        check(cudaEventElapsedTime(&ms, events[static_cast<std::size_t>(i)], events[static_cast<std::size_t>(i) + 1]),
              "time");
        us.push_back(ms * 1000);
    }
    for (auto& e : events) {
        cudaEventDestroy(e);
    }
    cudaStreamDestroy(stream);
    return median(us);
}

double copy_roof() {
    const std::int64_t bytes = std::int64_t{2} << 30;
    const DeviceBuffer a(bytes);
    const DeviceBuffer b(bytes);
    cudaEvent_t begin{};
    cudaEvent_t end{};
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    for (int i = 0; i < 12; ++i) {
        if (i == 2) {
            check(cudaEventRecord(begin), "event");
        }
        check(cudaMemcpyAsync(b.as(), a.as(), static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice), "copy");
    }
    check(cudaEventRecord(end), "event");
    check(cudaDeviceSynchronize(), "copy");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "time");
    return 2.0 * static_cast<double>(bytes) * 10 / (static_cast<double>(ms) * 1e-3) / 1e12;
}

std::vector<std::int32_t> parse_list(const char* list) {
    std::vector<std::int32_t> out;
    for (const char* p = list; *p != 0;) {
        char* end = nullptr;
        out.push_back(static_cast<std::int32_t>(std::strtol(p, &end, 10)));
        p = *end == ',' ? end + 1 : end;
    }
    return out;
}

struct BenchOptions {
    std::vector<std::int32_t> rows{1, 8, 64, 128, 512, 2048, 8192};
    std::vector<std::int32_t> tokens{0};
    std::vector<std::int32_t> versions{2};
    std::vector<std::int32_t> lags{0};
    std::string shape = "both";
    ExpertFormat format = ExpertFormat::kMxfp4;
    bool verify = true;
    double matrix_roof = 1431;  // TFLOPS of a dense FP8 product on the same card
};

void bench(const BenchOptions& b) {
    const double roof = copy_roof();
    std::printf("copy roof %.2f TB/s; matrix roof %.0f TFLOPS\n", roof, b.matrix_roof);
    const BenchCase cases[] = {
        {"flash", {.num_ranks = 1, .num_experts = 32, .top_k = 6, .hidden = 4096, .inter = 2048, .max_rows = 0}},
        {"pro", {.num_ranks = 1, .num_experts = 48, .top_k = 6, .hidden = 7168, .inter = 3072, .max_rows = 0}},
    };
    std::printf("%-6s %-6s %6s %-44s %7s %9s %7s %7s %6s %9s\n", "shape", "op", "T", "config", "experts", "us",
                "TFLOPS", "TB/s", "roof%", "error");
    for (const BenchCase& one : cases) {
        if (b.shape != "both" && b.shape != one.name) {
            continue;
        }
        for (const std::int32_t rows : b.rows) {
            for (const std::int32_t tokens : b.tokens) {
                for (const std::int32_t lag : b.lags) {
                    WorldOptions o;
                    o.shape = one.shape;
                    o.shape.max_rows = rows;
                    o.format = b.format;
                    o.config = cuda::choose_config(o.shape, rows);
                    if (tokens != 0) {
                        o.config.tokens = tokens;
                    }
                    if (lag != 0) {
                        o.config.lag = lag;
                    }
                    o.weight_sets = rows < 64 ? 4 : 2;
                    World world(o);
                    world.set_inputs({rows}, Routing::kUniform, 17);
                    for (const std::int32_t v : b.versions) {
                        const auto version = static_cast<MegaMoeVersion>(v);
                        const double us = measure(world, version, rows >= 2048 ? 12 : 24);
                        const std::int32_t active = world.active_experts();
                        const double weights =
                            static_cast<double>(active) / one.shape.num_experts *
                            static_cast<double>(
                                cuda::panel_bytes(b.format, 1, o.shape.hidden, o.shape.inter, o.shape.num_experts) +
                                cuda::panel_bytes(b.format, 2, o.shape.hidden, o.shape.inter, o.shape.num_experts));
                        const double flops = 6.0 * rows * o.shape.top_k * o.shape.hidden * o.shape.inter;
                        const double floor_us = std::max(weights / roof / 1e6, flops / b.matrix_roof / 1e6);
                        const double error = b.verify ? world.error(2) : 0;
                        std::printf("%-6s %-8s %5d %-44s %7d %9.1f %7.0f %7.2f %6.1f %9.1e%s\n", one.name,
                                    name_of(version), rows, cuda::to_string(o.config).c_str(), active, us,
                                    flops / us / 1e6, weights / us / 1e6, 100 * floor_us / us, error,
                                    world.control(0).status == 0 ? "" : " STATUS");
                        std::fflush(stdout);
                    }
                }
            }
        }
    }
}

void print_kernels() {
    for (const ExpertFormat format : {ExpertFormat::kMxfp4, ExpertFormat::kFp8}) {
        for (const std::int32_t tokens : {8, 16, 24, 32, 48, 64, 80, 96, 112}) {
            cuda::MegaMoeLimits limits{};
            check(cuda::query_mega_moe(format, tokens, limits), "query");
            std::printf("%s N=%-3d registers %d, shared %d, stages %d, spilled bytes %d, blocks %d\n",
                        format == ExpertFormat::kFp8 ? "fp8  " : "mxfp4", tokens, limits.registers, limits.shared_bytes,
                        limits.stages, limits.local_bytes, limits.max_blocks);
        }
    }
}

}  // namespace
}  // namespace megamoe::op_cuda

int main(int argc, char** argv) {
    using namespace megamoe::op_cuda;
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const std::string command = argc > 1 ? argv[1] : "";
    BenchOptions options;
    int launches = 2000;
    std::string what = "all";
    for (int i = 2; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        if (flag == "--rows") {
            options.rows = parse_list(argv[i + 1]);
        } else if (flag == "--tokens") {
            options.tokens = parse_list(argv[i + 1]);
        } else if (flag == "--versions") {
            options.versions = parse_list(argv[i + 1]);
        } else if (flag == "--lags") {
            options.lags = parse_list(argv[i + 1]);
        } else if (flag == "--shape") {
            options.shape = argv[i + 1];
        } else if (flag == "--format") {
            options.format = std::string(argv[i + 1]) == "fp8" ? megamoe::cuda::ExpertFormat::kFp8
                                                               : megamoe::cuda::ExpertFormat::kMxfp4;
        } else if (flag == "--verify") {
            options.verify = std::atoi(argv[i + 1]) != 0;
        } else if (flag == "--launches") {
            launches = std::atoi(argv[i + 1]);
        } else if (flag == "--what") {
            what = argv[i + 1];
        } else {
            std::fprintf(stderr, "op_cuda: unknown flag %s\n", argv[i]);
            return 2;
        }
    }
    if (command == "bench") {
        print_kernels();
        bench(options);
        return 0;
    }
    if (command == "check") {
        Checker checker;
        if (what == "all" || what == "small") {
            check_small(checker);
        }
        if (what == "all" || what == "protocol") {
            check_protocol(checker);
            check_clamp_and_spread(checker);
            check_graph(checker);
        }
        if (what == "all" || what == "fuzz") {
            check_fuzz(checker, launches);
        }
        std::printf("%d failures\n", checker.failures());
        return checker.failures() == 0 ? 0 : 1;
    }
    std::fprintf(
        stderr,
        "usage: op_cuda check [--what all|small|protocol|fuzz] | bench [--rows 1,64] [--shape flash|pro|both] ...\n");
    return 2;
}
