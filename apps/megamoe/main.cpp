// The program: a table of subcommands. Everything else is in one file a subcommand.
#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <exception>
#include <string_view>

#include "commands.h"
#include "subcommands.h"

namespace megamoe::apps {
namespace {

constexpr std::string_view kPurpose =
    "megamoe: serve mixture-of-experts models of the DeepSeek-V4 family and measure it. Start with `megamoe demo`.";

constexpr std::array kSubcommands{
    Subcommand{"demo", "serve the small model on this machine in two configurations and compare them", &demo_command},
    Subcommand{"serve", "serve a model over an OpenAI-compatible API", &serve_command},
    Subcommand{"bench", "make a prompt manifest (bench manifest), load a server with it (bench serve)", &bench_command},
    Subcommand{"op", "check and time the MoE operator alone", &op_command},
    Subcommand{"model", "inspect, synthesise, run or verify a checkpoint", &model_command},
};

}  // namespace
}  // namespace megamoe::apps

int main(int argc, char** argv) {
    try {
        if (argc > 1 && std::string_view(argv[1]) == "--version") {
            fmt::print("megamoe {}\n", MM_VERSION);
            return megamoe::apps::kExitDone;
        }
        return megamoe::apps::run_subcommand("megamoe", megamoe::apps::kPurpose, megamoe::apps::kSubcommands, argc,
                                             argv);
    } catch (const std::exception& error) {  // out of memory and the like: our own code throws nothing
        std::fprintf(stderr, "megamoe: internal error: %s\n", error.what());
        return megamoe::apps::kExitInternal;
    }
}
