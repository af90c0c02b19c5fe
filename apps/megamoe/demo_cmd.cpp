// megamoe demo: serve, replay, compare, report, and let the model speak.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli.h"
#include "demo_options.h"
#include "lab/arms/ab_run.h"
#include "lab/arms/server_process.h"
#include "lab/cli/progress_line.h"
#include "lab/client/http_call.h"
#include "lab/client/sse_parser.h"
#include "lab/client/stream_event.h"
#include "lab/core/files.h"
#include "lab/core/interrupt.h"
#include "lab/manifest/generate.h"
#include "lab/manifest/manifest_file.h"
#include "lab/report/environment.h"
#include "lab/report/html_report.h"
#include "text_tokens.h"

namespace megamoe::apps {
namespace {

constexpr std::int64_t kReadyTimeoutMs = 180000;
constexpr std::int64_t kGraceMs = 20000;

void say(const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
}

Result<lab::Manifest> make_manifest(const DemoOptions& options, const std::string& path) {
    lab::GenerateOptions generate;
    generate.dataset = options.dataset_path.empty() ? "random" : "random-text";
    generate.dataset_path = options.dataset_path;
    generate.num_prompts = options.num_prompts;
    generate.warmup_requests = 2 * options.max_concurrency;
    generate.input_len = options.input_len;
    generate.output_len = options.output_len;
    MM_TRY(const auto tokens, load_text_tokens(options.model_path));
    MM_TRY(lab::Manifest manifest, lab::generate_manifest(generate, *tokens));
    MM_TRY_DONE(lab::write_manifest(manifest, path));
    return lab::read_manifest(path);
}

lab::AbOptions ab_options(const DemoOptions& options, std::vector<lab::Arm> arms, const std::string& command) {
    lab::AbOptions ab;
    ab.arms = std::move(arms);
    ab.repeats = options.repeats;
    ab.measure.num_prompts = options.num_prompts;
    ab.measure.warmup_requests = 2 * options.max_concurrency;
    ab.measure.max_concurrency = options.max_concurrency;
    ab.measure.usage = lab::StreamUsage::kContinuous;
    ab.manifest_path = options.output_dir + "/manifest.jsonl.gz";
    ab.output_dir = options.output_dir;
    ab.experiment = "demo";
    ab.client_command = command;
    ab.ready_timeout_ms = kReadyTimeoutMs;
    ab.grace_ms = kGraceMs;
    return ab;
}

std::string workload_text(const DemoOptions& options) {
    return fmt::format("{} prompts of {} tokens ({}), {} tokens generated each, {} in flight, {} repeat{} of each arm",
                       options.num_prompts, options.input_len,
                       options.dataset_path.empty() ? "random" : "from " + options.dataset_path, options.output_len,
                       options.max_concurrency, options.repeats, options.repeats == 1 ? "" : "s");
}

Result<Done> run_comparison(const DemoOptions& options, const std::vector<lab::Arm>& arms, const std::string& command,
                            lab::Experiment& experiment) {
    MM_TRY_DONE(lab::make_empty_folder(options.output_dir));
    lab::AbOptions ab = ab_options(options, arms, command);
    MM_TRY(const lab::Manifest manifest, make_manifest(options, ab.manifest_path));
    say(fmt::format("prompts  {}\n", manifest.prompts_sha256));
    experiment.title = "megamoe demo: " + std::filesystem::path(options.model_path).filename().string();
    experiment.workload = workload_text(options);
    experiment.machine = lab::machine_in_words();
    lab::ProgressLine progress(/*quiet=*/false);
    ab.on_progress = [&](std::string_view what) { progress.show(what); };
    ab.on_event = [&](const std::string& line) {
        progress.clear();
        say(line);
    };
    return lab::run_arms(ab, manifest, experiment);
}

Result<Done> write_report(const DemoOptions& options, const lab::Experiment& experiment) {
    MM_TRY_DONE(lab::write_file(options.output_dir + "/report.html", lab::html_report(experiment)));
    MM_TRY_DONE(lab::write_file(options.output_dir + "/result.json", lab::experiment_json(experiment)));
    say("\n" + lab::experiment_table(experiment));
    for (const std::string& sentence : lab::verdict_sentences(experiment)) {
        say(sentence);
    }
    say(fmt::format("\nreport   {}/report.html\nresults  {}/result.json, {}/runs/", options.output_dir,
                    options.output_dir, options.output_dir));
    return Done{};
}

// The server command as a person would type it.
std::string command_of(const lab::Arm& arm, const std::string& port) {
    std::vector<std::string> argv = arm.server_argv;
    argv.front() = "megamoe";
    for (std::size_t k = 0; k + 1 < argv.size(); ++k) {
        if (argv[k] == "--port") {
            argv[k + 1] = port;
        }
    }
    return lab::shell_quote(argv);
}

// One chat request, printed as it is generated.
Result<Done> chat(const lab::Target& target, const std::string& question) {
    const nlohmann::json body = {{"messages", {{{"role", "user"}, {"content", question}}}},
                                 {"max_tokens", 80},
                                 {"temperature", 0.7},
                                 {"seed", 7},
                                 {"stream", true}};
    std::string failure;
    lab::SseParser parser;
    const lab::SseParser::OnEvent print = [&](std::string_view data) {
        const auto event = lab::parse_stream_event(data);
        failure = !event ? event.error().what : !event.value().error.empty() ? event.value().error : failure;
        if (event) {
            fmt::print("{}", event.value().text);
            std::fflush(stdout);
        }
    };
    MM_TRY(const lab::HttpAnswer answer,
           lab::call(target, {.method = "POST",
                              .endpoint = "/v1/chat/completions",
                              .body = body.dump(),
                              .timeout_ms = 120000,
                              .on_body = [&](std::string_view bytes) { parser.feed(bytes, print); }}));
    fmt::print("\n");
    if (answer.status != 200 || !failure.empty()) {
        return Error{Errc::kUnavailable,
                     fmt::format("the chat request failed: {}", failure.empty() ? answer.body : failure), ""};
    }
    return Done{};
}

Result<Done> let_the_model_speak(const DemoOptions& options, const lab::Arm& arm) {
    const std::string log = options.output_dir + "/runs/chat.log";
    MM_TRY(lab::ServerProcess server, lab::ServerProcess::start(arm.server_argv, log));
    MM_TRY(const lab::Target target, server.wait_ready(kReadyTimeoutMs, nullptr));
    say(fmt::format("\nOne chat request to {}; a model of this size knows nothing, it goes on with your words:\n\n{}",
                    arm.name, options.question));
    MM_TRY_DONE(chat(target, options.question));
    return server.stop(kGraceMs);
}

void print_what_next(const DemoOptions& options, const lab::Arm& arm) {
    const nlohmann::json body = {{"messages", {{{"role", "user"}, {"content", options.question}}}}, {"max_tokens", 80}};
    say(
        fmt::format("\nTo go on by hand:\n  {}\n  curl -s http://127.0.0.1:30000/v1/chat/completions "
                    "-H 'Content-Type: application/json' -d {}",
                    command_of(arm, "30000"), lab::shell_quote({body.dump()})));
}

Result<ExitCode> run_demo(const DemoOptions& options, const std::string& command) {
    if (!std::filesystem::exists(options.model_path + "/config.json")) {
        return Error{Errc::kNotFound, "no model in " + options.model_path,
                     "run from the project's root folder, or name a checkpoint with --model-path"};
    }
    MM_TRY(const std::vector<lab::Arm> arms, make_arms(options));
    say("model    " + options.model_path);
    for (const lab::Arm& arm : arms) {
        say(fmt::format("arm      {}: {}", arm.name, command_of(arm, "0")));
    }
    say("work     " + workload_text(options));
    lab::Experiment experiment;
    const auto compared = run_comparison(options, arms, command, experiment);
    const auto is_valid = [](const lab::ExperimentRun& run) { return run.checks.valid(); };
    if (std::any_of(experiment.runs.begin(), experiment.runs.end(), is_valid)) {
        MM_TRY_DONE(write_report(options, experiment));
    }
    if (!compared) {
        return compared.error();
    }
    MM_TRY_DONE(let_the_model_speak(options, arms.back()));
    print_what_next(options, arms.back());
    const bool all_valid = std::all_of(experiment.runs.begin(), experiment.runs.end(), is_valid);
    return all_valid ? kExitDone : kExitRequestFailed;
}

}  // namespace

int demo_command(int argc, char** argv) {
    const std::vector<std::string> args(argv + 1, argv + argc);
    std::string help;
    const auto options = parse_demo(args, help);
    if (!options) {
        return fail("demo", options.error());
    }
    if (!help.empty()) {
        fmt::print("{}", help);
        return kExitDone;
    }
    const lab::InterruptGuard guard;
    std::vector<std::string> words{"megamoe", "demo"};
    words.insert(words.end(), args.begin(), args.end());
    const auto done = run_demo(options.value(), lab::shell_quote(words));
    if (lab::interrupted()) {
        fmt::print(stderr, "megamoe demo: interrupted\n");
        return kExitInterrupted;
    }
    return done ? static_cast<int>(done.value()) : fail("demo", done.error());
}

}  // namespace megamoe::apps
