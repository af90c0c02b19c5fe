// A word of the command line that chooses what runs: used for `megamoe X` and `megamoe model X` alike.
#pragma once

#include <span>
#include <string_view>

namespace megamoe::apps {

struct Subcommand {
    std::string_view name;
    std::string_view summary;
    int (*run)(int argc, char** argv);
};

// Runs the entry that argv[1] names with argv shifted by one; prints the list for --help, and for an unknown word the
// nearest name.
// In    program  what stands before the word: "megamoe model"
//       purpose  one line for --help
// Out   the exit code
int run_subcommand(std::string_view program, std::string_view purpose, std::span<const Subcommand> table, int argc,
                   char** argv);

}  // namespace megamoe::apps
