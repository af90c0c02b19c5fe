// megamoe bench: the laboratory's commands, with this program's tokenizer.
#include <string>
#include <vector>

#include "commands.h"
#include "lab/cli.h"
#include "text_tokens.h"

namespace megamoe::apps {

int bench_command(int argc, char** argv) {
    const std::vector<std::string> args(argv + 1, argv + argc);
    return lab::run_bench(args, load_text_tokens);
}

}  // namespace megamoe::apps
