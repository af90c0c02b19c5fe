#include "subcommands.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "base/nearest.h"
#include "commands.h"

namespace megamoe::apps {
namespace {

void print_help(std::string_view program, std::string_view purpose, std::span<const Subcommand> table) {
    fmt::print("{}\n\nusage: {} SUBCOMMAND [ARGUMENTS]\n\n", purpose, program);
    for (const Subcommand& sub : table) {
        fmt::print("  {:10}{}\n", sub.name, sub.summary);
    }
    fmt::print("\n`{} SUBCOMMAND --help` lists the arguments.\n", program);
}

int reject(std::string_view program, std::span<const Subcommand> table, const std::string& word) {
    std::vector<std::string> names;
    for (const Subcommand& sub : table) {
        names.emplace_back(sub.name);
    }
    const std::string near = nearest(word, names);
    fmt::print(stderr, "{}: there is no subcommand `{}`; {}\n", program, word,
               near.empty() ? fmt::format("`{} --help` lists them", program) : fmt::format("did you mean `{}`?", near));
    return kExitUsage;
}

}  // namespace

int run_subcommand(std::string_view program, std::string_view purpose, std::span<const Subcommand> table, int argc,
                   char** argv) {
    const std::string word = argc > 1 ? argv[1] : "";
    if (word.empty() || word == "--help" || word == "-h") {
        print_help(program, purpose, table);
        return word.empty() ? kExitUsage : kExitDone;
    }
    for (const Subcommand& sub : table) {
        if (sub.name == word) {
            return sub.run(argc - 1, argv + 1);
        }
    }
    return reject(program, table, word);
}

}  // namespace megamoe::apps
