// megamoe op: the MoE operator alone, right (op check) and fast (op bench).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "bench/roofs/roofs.h"
#include "cli.h"
#include "compute/cpu/isa.h"
#include "lab/cli/flags.h"
#include "lab/core/files.h"
#include "moe/op/op_bench.h"
#include "moe/op/op_check.h"
#include "moe/op/op_report.h"
#include "moe/op/op_timing.h"
#include "subcommands.h"

namespace megamoe::apps {
namespace {

namespace op = moe::op;

// What both commands take, as written.
struct CommonFlags {
    std::string geometry = "tiny";
    std::optional<std::int32_t> experts;
    std::string formats = "fp4,fp8,bf16";
    std::string routing = "uniform";
    std::string isa;
    std::int32_t threads_per_rank = 1;
    std::uint64_t seed = 1;

    void add_to(CLI::App& app) {
        app.option_defaults()->always_capture_default();
        app.add_option("--geometry", geometry, "tiny, flash-share, pro-share: sizes of one GPU's share of the model");
        app.add_option("--experts", experts, "instead of the geometry's, of all ranks together");
        app.add_option("--format", formats, "weights of the experts, some of fp4,fp8,bf16");
        app.add_option("--routing", routing,
                       "some of uniform,log-normal:SIGMA,one-expert,one-rank,file:PATH; a file holds the experts of a "
                       "row as JSON on each line: [3, 17, 0, 5]");
        app.add_option("--threads-per-rank", threads_per_rank, "compute threads")->check(CLI::Range(1, 1024));
        app.add_option("--isa", isa, "scalar, avx2, avx512, avx512bf16; default: the best here");
        app.add_option("--seed", seed, "one seed, the same operands on every machine");
    }
};

// What they mean.
struct Common {
    op::Geometry geometry;
    std::vector<ops::WeightFormat> formats;
    std::vector<op::Routing> routings;
    cpu::Isa isa{};
};

Result<std::vector<std::int32_t>> parse_numbers(const char* flag, const std::string& text, std::int32_t lowest,
                                                std::int32_t highest) {
    std::vector<std::int32_t> numbers;
    for (const std::string& part : lab::split_list(text)) {
        std::int32_t value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (error != std::errc() || end != part.data() + part.size() || value < lowest || value > highest) {
            return invalid(
                fmt::format("{} {}: `{}` is not a whole number from {} to {}", flag, text, part, lowest, highest),
                "write a list as 1,2,4");
        }
        numbers.push_back(value);
    }
    if (numbers.empty()) {
        return invalid(fmt::format("{} names no number", flag), "write a list as 1,2,4");
    }
    return numbers;
}

Result<op::Routing> read_routing(const std::string& text, const op::Geometry& geometry) {
    MM_TRY(auto routing, op::parse_routing(text));
    if (routing.kind == op::RoutingKind::kRecorded) {
        MM_TRY(const std::string lines, lab::read_file(routing.file));
        auto recorded = op::parse_recorded(lines, geometry);
        if (!recorded) {
            return invalid(routing.file + ": " + recorded.error().what, recorded.error().hint);
        }
        routing.recorded = std::move(recorded).take();
    }
    return routing;
}

Result<Common> interpret(const CommonFlags& flags) {
    Common common;
    MM_TRY(common.geometry, op::find_geometry(flags.geometry));
    if (flags.experts) {
        if (*flags.experts < common.geometry.top_k || *flags.experts > 65536) {
            return invalid(fmt::format("--experts {} is not from {} (each row goes to so many) to 65536",
                                       *flags.experts, common.geometry.top_k));
        }
        common.geometry.num_experts = *flags.experts;
    }
    for (const std::string& name : lab::split_list(flags.formats)) {
        MM_TRY(const auto format, op::parse_format(name));
        common.formats.push_back(format);
    }
    for (const std::string& text : lab::split_list(flags.routing)) {
        MM_TRY(auto routing, read_routing(text, common.geometry));
        common.routings.push_back(std::move(routing));
    }
    if (common.formats.empty() || common.routings.empty()) {
        return invalid("--format and --routing must name one each at least");
    }
    common.isa = cpu::detect_isa();
    if (!flags.isa.empty()) {
        MM_TRY(common.isa, cpu::parse_isa(flags.isa));
    }
    return common;
}

// An exit code if the command ends here: --help, or a line that is wrong and has been reported.
std::optional<int> parse_line(CLI::App& app, std::string_view command, int argc, char** argv) {
    const std::vector<std::string> args(argv + 1, argv + argc);
    if (std::any_of(args.begin(), args.end(), [](const auto& arg) { return arg == "--help" || arg == "-h"; })) {
        fmt::print("{}", app.help());
        return kExitDone;
    }
    const auto parsed = lab::parse_flags(app, args, {});
    return parsed ? std::nullopt : std::optional(fail(command, parsed.error()));
}

Result<bool> check(const CommonFlags& flags, const std::string& ranks, std::int32_t tokens) {
    MM_TRY(const Common common, interpret(flags));
    op::CheckOptions options;
    options.geometry = common.geometry;
    options.formats = common.formats;
    options.tokens = tokens;
    options.threads_per_rank = flags.threads_per_rank;
    options.seed = flags.seed;
    options.isa = common.isa;
    MM_TRY(options.ranks, parse_numbers("--ranks", ranks, 1, comm::kMaxRanks));
    bool passed = true;
    for (const op::Routing& routing : common.routings) {
        options.routing = routing;
        fmt::print("geometry {} ({} experts), {} tokens, routing {}, isa {}; error bar {:.0e}\n{}",
                   options.geometry.name, options.geometry.num_experts, tokens, routing.text, cpu::name(options.isa),
                   op::kErrorBar, op::check_header());
        MM_TRY(const bool all, op::run_check(options, [](const op::CheckRow& row) {
                   fmt::print("{}", op::check_line(row));
                   std::fflush(stdout);
               }));
        passed = passed && all;
    }
    return passed;
}

int check_command(int argc, char** argv) {
    CLI::App app{
        "Runs every backend on every number of ranks: all must give the bits of `reference` on one rank, and those "
        "must "
        "be near what the released numerics give in double precision.",
        "megamoe op check"};
    CommonFlags flags;
    std::string ranks = "1,2,4";
    std::int32_t tokens = 16;
    flags.add_to(app);
    app.add_option("--ranks", ranks, "numbers of expert-parallel ranks");
    app.add_option("--tokens", tokens, "rows of all ranks together, spread unevenly")->check(CLI::Range(1, 65536));
    if (const auto code = parse_line(app, "op check", argc, argv)) {
        return *code;
    }
    const auto passed = check(flags, ranks, tokens);
    if (!passed) {
        return fail("op check", passed.error());
    }
    fmt::print("{}\n", passed.value() ? "all rows passed" : "some rows FAILED");
    return passed.value() ? kExitDone : kExitGateFailed;
}

struct BenchFlags {
    CommonFlags common;
    std::string tokens = "1,4,16,64,256";
    std::string json;
    op::BenchOptions options;
};

// One line that is written over on a terminal, and one line a case elsewhere.
void show_progress(const op::BenchProgress& at) {
    const bool terminal = isatty(STDERR_FILENO) == 1;
    fmt::print(stderr, "{}[{}/{}] {}{}", terminal ? "\r\033[K" : "", at.done, at.total, at.now, terminal ? "" : "\n");
    std::fflush(stderr);
}

void show_row(const op::BenchRow& row) {
    if (isatty(STDERR_FILENO) == 1) {
        fmt::print(stderr, "\r\033[K");
    }
    fmt::print("{}", op::bench_line(row));
    std::fflush(stdout);
}

Result<Done> bench(BenchFlags& flags) {
    MM_TRY(const Common common, interpret(flags.common));
    op::BenchOptions& options = flags.options;
    options.geometry = common.geometry;
    options.formats = common.formats;
    options.routings = common.routings;
    options.threads_per_rank = flags.common.threads_per_rank;
    options.seed = flags.common.seed;
    options.isa = common.isa;
    MM_TRY(options.tokens, parse_numbers("--tokens", flags.tokens, 1, 65536));
    const op::Roofs roofs{.read = &bench::stream_read_rate, .product = &bench::bf16_matmul_rate};
    fmt::print(
        "isa {}, {} ranks of {} threads{}; us: median; % roof: of the median, above 100 where caches "
        "hold the experts; x std: time of `standard` / time of this one; behind the bar: "
        "us of each stage, mean of the ranks\n{}",
        cpu::name(options.isa), options.num_ranks, options.threads_per_rank,
        op::ranks_have_cores(options.num_ranks, options.threads_per_rank) ? ", on cores of their own"
                                                                          : " on fewer cores: times are not reliable",
        op::bench_header());
    std::vector<op::BenchRow> rows;
    MM_TRY_DONE(op::run_bench(
        options, roofs,
        [&](const op::BenchRow& row) {
            show_row(row);
            rows.push_back(row);
        },
        &show_progress));
    if (!flags.json.empty()) {
        MM_TRY_DONE(lab::write_file(flags.json, op::bench_json(options, rows)));
    }
    return Done{};
}

int bench_command(int argc, char** argv) {
    CLI::App app{
        "Times standard, megamoe 1 and megamoe 2 in turns, beside what this machine can do at best. Every row is "
        "checked "
        "before it is timed.",
        "megamoe op bench"};
    BenchFlags flags;
    flags.common.formats = "fp4";
    flags.common.add_to(app);
    app.add_option("--ranks", flags.options.num_ranks, "expert-parallel ranks")->check(CLI::Range(1, comm::kMaxRanks));
    app.add_option("--tokens", flags.tokens, "rows a rank brings, a list");
    app.add_option("--repeats", flags.options.repeats, "of each row, 3 at least")->check(CLI::Range(3, 100000));
    app.add_option("--seconds", flags.options.seconds, "of timing one case; ends the repetitions early")
        ->check(CLI::Range(0.0, 86400.0));
    app.add_option("--json", flags.json, "file for the results in full precision");
    if (const auto code = parse_line(app, "op bench", argc, argv)) {
        return *code;
    }
    const auto done = bench(flags);
    return done ? static_cast<int>(kExitDone) : fail("op bench", done.error());
}

constexpr std::array kSubcommands{
    Subcommand{"check", "compare all backends with each other and with a double-precision oracle", &check_command},
    Subcommand{"bench", "time all backends beside the roofs of this machine", &bench_command},
};

}  // namespace

int op_command(int argc, char** argv) {
    return run_subcommand("megamoe op", "The MoE operator alone: is it right, and how fast is it?", kSubcommands, argc,
                          argv);
}

}  // namespace megamoe::apps
