#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <string>

#include "base/nearest.h"
#include "lab/cli.h"

namespace megamoe::lab {
namespace {

constexpr const char* kUsage =
    "usage: megamoe bench serve --base-url URL --output-dir FOLDER ...   replay prompts, measure\n"
    "       megamoe bench manifest make|verify|show|diff ...            frozen prompts\n"
    "       megamoe bench null-server ...                               a server with a known schedule\n"
    "Each takes --help. Exit codes: 0 good, 1 usage, 2 figures must not be compared, 3 requests failed,\n"
    "4 server gone, 6 manifest does not fit, 7 internal, 130 interrupted.\n";

int serve(const std::vector<std::string>& args, const TokenSourceFactory& load_tokens) {
    const auto options = parse_bench_serve(args);
    if (!options) {
        fmt::print(stderr, "error: {}\n", to_string(options.error()));
        return code(Exit::kUsage);
    }
    if (!options.value().help.empty()) {
        fmt::print("{}", options.value().help);
        return code(Exit::kGood);
    }
    return run_bench_serve(options.value(), load_tokens);
}

}  // namespace

int run_bench(const std::vector<std::string>& args, const TokenSourceFactory& load_tokens) {
    const std::array<std::string, 3> kCommands{"serve", "manifest", "null-server"};
    const std::string command = args.empty() ? "--help" : args.front();
    const std::vector<std::string> rest(args.begin() + (args.empty() ? 0 : 1), args.end());
    if (command == "serve") {
        return serve(rest, load_tokens);
    }
    if (command == "manifest") {
        return run_bench_manifest(rest, load_tokens);
    }
    if (command == "null-server") {
        return run_null_server(rest);
    }
    if (command == "--help" || command == "-h") {
        fmt::print("{}", kUsage);
        return code(Exit::kGood);
    }
    const std::string hint = nearest(command, kCommands);
    fmt::print(stderr, "error: unknown command 'bench {}'{}\n{}", command,
               hint.empty() ? "" : " (did you mean " + hint + "?)", kUsage);
    return code(Exit::kUsage);
}

}  // namespace megamoe::lab
