#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <thread>

#include "commands.h"
#include "model/golden.h"

namespace megamoe::apps {

int golden_command(int argc, char** argv) {
    CLI::App app{"Compares a model folder with the reference outputs in its golden.safetensors.",
                 "megamoe model golden"};
    std::string dir;
    std::string isa_name;
    int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    model::GoldenBars bars;
    app.add_option("DIR", dir, "folder with config.json, weights and golden.safetensors")->required();
    app.add_option("--isa", isa_name, "scalar, avx2, avx512 or avx512bf16; default: the best this machine has");
    app.add_option("--threads", threads, "compute threads")->check(CLI::Range(1, 1024));
    CLI11_PARSE(app, argc, argv);

    const auto fail = [](const Error& error) {
        fmt::print(stderr, "megamoe model golden: {}\n", to_string(error));
        return static_cast<int>(kExitUsage);
    };
    cpu::Isa isa = cpu::detect_isa();
    if (!isa_name.empty()) {
        auto parsed = cpu::parse_isa(isa_name);
        if (!parsed) {
            return fail(parsed.error());
        }
        isa = parsed.value();
    }
    Workers workers(threads);
    auto model = model::LoadedModel::load(dir, workers);
    if (!model) {
        return fail(model.error());
    }
    fmt::print("model {}  isa {}  threads {}\n", dir, cpu::name(isa), threads);
    auto missed = model::check_golden(model.value(), isa, threads, bars, [](std::string_view line) {
        fmt::print("{}\n", line);
        std::fflush(stdout);
    });
    if (!missed) {
        return fail(missed.error());
    }
    return missed.value() == 0 ? kExitDone : kExitGateFailed;
}

}  // namespace megamoe::apps
