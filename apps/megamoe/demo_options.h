// What `megamoe demo` is asked to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/arms/ab_run.h"

namespace megamoe::apps {

struct DemoOptions {
    std::string model_path = "models/mini";
    std::vector<std::int32_t> ranks = {1, 2};  // an arm each, unless `arms` is given
    std::vector<std::string> arms;             // "name=flags of megamoe serve"
    std::uint32_t input_len = 192;
    std::uint32_t output_len = 48;
    std::int64_t num_prompts = 96;
    std::int32_t max_concurrency = 8;
    int repeats = 3;
    std::string dataset_path;  // empty: sample_text.txt of the model folder, or random tokens
    std::string output_dir;    // empty: demo-results/<date and time>
    std::string question = "It was a fine morning, and she had made up her mind to walk to the village,";
};

// In    args  the words after `megamoe demo`
// Out   help_text is filled when the user asked for help
// Error kInvalidArgument: a flag that is unknown or makes no sense
[[nodiscard]] Result<DemoOptions> parse_demo(const std::vector<std::string>& args, std::string& help_text);

// The server command of each arm: this program's own `serve`, any free port.
// Error kInvalidArgument: an arm without a name, or two of one name
[[nodiscard]] Result<std::vector<lab::Arm>> make_arms(const DemoOptions& options);

}  // namespace megamoe::apps
