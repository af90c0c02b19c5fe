// The program: a table of subcommands. Everything else is in one file a subcommand.
#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "base/nearest.h"
#include "megamoe/commands.h"

namespace megamoe::apps {
namespace {

struct Subcommand {
    std::string_view name;
    std::string_view summary;
    int (*run)(int argc, char** argv);
};

constexpr std::array kSubcommands{
    Subcommand{"demo", "serve the small model on this machine in two configurations and compare them", &demo_command},
    Subcommand{"serve", "serve a model over an OpenAI-compatible API", &serve_command},
    Subcommand{"bench", "make a prompt manifest (`bench manifest`) and load a server with it (`bench serve`)",
               &bench_command},
    Subcommand{"model", "inspect, synthesise, run or verify a checkpoint", &model_command},
};

void print_help() {
    fmt::print("megamoe {}: serve mixture-of-experts models of the DeepSeek-V4 family, and measure it\n\n", MM_VERSION);
    fmt::print("usage: megamoe SUBCOMMAND [ARGUMENTS]\n\n");
    for (const Subcommand& sub : kSubcommands) {
        fmt::print("  {:8}{}\n", sub.name, sub.summary);
    }
    fmt::print("\n`megamoe SUBCOMMAND --help` lists the arguments. Start with `megamoe demo`.\n");
}

int reject_unknown(const std::string& word) {
    std::array<std::string, kSubcommands.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) {
        names[i] = kSubcommands[i].name;
    }
    const std::string near = nearest(word, names);
    fmt::print(stderr, "megamoe: there is no subcommand `{}`{}\n", word,
               near.empty() ? "; `megamoe --help` lists them" : fmt::format("; did you mean `{}`?", near));
    return kExitUsage;
}

int run(int argc, char** argv) {
    const std::string word = argc > 1 ? argv[1] : "--help";
    if (word == "--help" || word == "-h" || word == "help") {
        print_help();
        return argc > 1 ? kExitDone : kExitUsage;
    }
    if (word == "--version") {
        fmt::print("megamoe {}\n", MM_VERSION);
        return kExitDone;
    }
    for (const Subcommand& sub : kSubcommands) {
        if (sub.name == word) {
            return sub.run(argc - 1, argv + 1);
        }
    }
    return reject_unknown(word);
}

}  // namespace
}  // namespace megamoe::apps

int main(int argc, char** argv) {
    try {
        return megamoe::apps::run(argc, argv);
    } catch (const std::exception& error) {  // out of memory and the like: our own code throws nothing
        std::fprintf(stderr, "megamoe: internal error: %s\n", error.what());
        return megamoe::apps::kExitInternal;
    }
}
