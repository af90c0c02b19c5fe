#include "demo_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

#include "lab/cli/flags.h"

namespace megamoe::apps {
namespace {

Result<std::vector<std::int32_t>> parse_ranks(const std::string& text) {
    std::vector<std::int32_t> ranks;
    for (const std::string& part : lab::split_list(text)) {
        std::int32_t value = 0;
        const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
        if (error != std::errc() || end != part.data() + part.size() || value < 1) {
            return invalid("--ranks " + text + ": '" + part + "' is not a number of ranks", "write it as 1,2");
        }
        ranks.push_back(value);
    }
    if (ranks.empty()) {
        return invalid("--ranks names no number", "write it as 1,2");
    }
    return ranks;
}

std::string folder_for_now() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    char text[32];
    std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
    return std::string("demo-results/") + text;
}

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) {
        words.push_back(word);
    }
    return words;
}

}  // namespace

Result<DemoOptions> parse_demo(const std::vector<std::string>& args, std::string& help_text) {
    DemoOptions options;
    std::string ranks = "1,2";
    CLI::App app(
        "Serves a model under two or more configurations in turn, replays the same prompts against each, and says "
        "which "
        "is faster and whether that is more than noise.",
        "megamoe demo");
    app.option_defaults()->always_capture_default();
    app.add_option("--model-path,--model", options.model_path, "checkpoint folder");
    app.add_option("--ranks", ranks, "numbers of expert-parallel ranks, one arm each");
    app.add_option("--arms", options.arms, "arms of your own instead: 'NAME=FLAGS OF megamoe serve' ...");
    app.add_option("--input-len", options.input_len, "prompt tokens");
    app.add_option("--output-len", options.output_len, "tokens to generate");
    app.add_option("--num-prompts", options.num_prompts, "measured requests a run");
    app.add_option("--max-concurrency", options.max_concurrency, "requests in flight");
    app.add_option("--repeats", options.repeats, "runs of each arm; below 3 no verdict is possible");
    app.add_option("--dataset-path", options.dataset_path, "text the prompts are cut from");
    app.add_option("--question", options.question, "what the model is asked at the end");
    app.add_option("--output-dir", options.output_dir, "new folder for the results");
    if (std::find(args.begin(), args.end(), "--help") != args.end()) {
        help_text = app.help();
        return options;
    }
    MM_TRY_DONE(lab::parse_flags(app, args, {}));
    MM_TRY(options.ranks, parse_ranks(ranks));
    if (options.repeats < 1 || options.max_concurrency < 1 || options.num_prompts < 1) {
        return invalid("--repeats, --max-concurrency and --num-prompts must be at least 1");
    }
    if (options.output_dir.empty()) {
        options.output_dir = folder_for_now();
    }
    const std::string sample = options.model_path + "/sample_text.txt";
    if (options.dataset_path.empty() && std::filesystem::exists(sample)) {
        options.dataset_path = sample;
    }
    return options;
}

Result<std::vector<lab::Arm>> make_arms(const DemoOptions& options) {
    std::error_code error;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
    const auto arm = [&](std::string name, const std::vector<std::string>& flags) {
        lab::Arm made{
            .name = std::move(name),
            .server_argv = {self, "serve", "--model-path", options.model_path, "--host", "127.0.0.1", "--port", "0"}};
        made.server_argv.insert(made.server_argv.end(), flags.begin(), flags.end());
        return made;
    };
    std::vector<lab::Arm> arms;
    for (const std::string& text : options.arms) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0) {
            return invalid("--arms '" + text + "' has no name",
                           "write it as 'NAME=FLAGS', for example 'one=--ep-size 1'");
        }
        arms.push_back(arm(text.substr(0, equals), words_of(text.substr(equals + 1))));
    }
    if (arms.empty()) {
        for (const std::int32_t ranks : options.ranks) {
            arms.push_back(arm(fmt::format("ep{}", ranks), {"--ep-size", std::to_string(ranks)}));
        }
    }
    std::set<std::string> names;
    for (const lab::Arm& made : arms) {
        if (!names.insert(made.name).second) {
            return invalid("two arms are called " + made.name, "give every arm its own name");
        }
        if (made.name.find('/') != std::string::npos) {
            return invalid("arm name " + made.name + " holds a slash", "names become folder names");
        }
    }
    return arms;
}

}  // namespace megamoe::apps
