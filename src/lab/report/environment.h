// env.json: the machine and the process a run was made with.
#pragma once

#include <string>

namespace megamoe::lab {

// Host name and user appear as hashes only; of environment variables whose name smells of a secret only that they are
// set.
// Spec  bench.md 9.2, the part a client can see
std::string environment_json(const std::string& command);

// "AMD EPYC 9654, 2 cores, Linux 6.1.0"
std::string machine_in_words();

}  // namespace megamoe::lab
