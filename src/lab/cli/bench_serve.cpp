#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "lab/cli.h"
#include "lab/cli/open_manifest.h"
#include "lab/cli/progress_line.h"
#include "lab/client/http_call.h"
#include "lab/core/files.h"
#include "lab/core/interrupt.h"
#include "lab/manifest/manifest_file.h"
#include "lab/report/run_table.h"
#include "lab/report/write_run.h"

namespace megamoe::lab {
namespace {

int complain(Exit exit, const Error& error) {
    fmt::print(stderr, "error: {}\n", to_string(error));
    return code(exit);
}

Exit exit_of_manifest(const Error& error) {
    return error.code == Errc::kFailedPrecondition ? Exit::kManifest
           : error.code == Errc::kInternal         ? Exit::kInternal
                                                   : Exit::kUsage;
}

Exit exit_of_measure(const Error& error) {
    if (interrupted()) {
        return Exit::kInterrupted;
    }
    switch (error.code) {
        case Errc::kUnavailable:
            return Exit::kServerGone;
        case Errc::kFailedPrecondition:
            return Exit::kManifest;
        case Errc::kInternal:
            return Exit::kInternal;
        default:
            return Exit::kUsage;
    }
}

Exit exit_of_run(const Measured& run, const MeasureOptions& options) {
    if (run.pass.interrupted) {
        return Exit::kInterrupted;
    }
    if (run.metrics.failed > 0 || run.warmup_failed > 0) {
        const bool answers = static_cast<bool>(call(options.target, {.endpoint = "/health", .timeout_ms = 5000}));
        return answers ? Exit::kRequestFailed : Exit::kServerGone;
    }
    return check_run(run, options).valid() ? Exit::kGood : Exit::kGateFailed;
}

// A manifest made for this run alone is kept beside its results.
Result<std::string> keep_manifest(OpenedManifest& opened, const std::string& output_dir) {
    if (!opened.path.empty()) {
        return opened.path;
    }
    const std::string path = output_dir + ".manifest.jsonl.gz";
    MM_TRY_DONE(write_manifest(opened.manifest, path));
    return path;
}

// The command line as it may be kept: the values of headers can be keys.
std::vector<std::string> without_secrets(std::vector<std::string> argv) {
    const auto hide = [](std::string& header) { header = header.substr(0, header.find(':')) + ":..."; };
    for (std::size_t k = 0; k < argv.size(); ++k) {
        if (argv[k] == "--header" && k + 1 < argv.size()) {
            hide(argv[k + 1]);
        } else if (argv[k].starts_with("--header=")) {
            hide(argv[k]);
        }
    }
    return argv;
}

Result<Done> write_results(const Measured& run, const MeasureOptions& measure, const Manifest& manifest,
                           const std::string& manifest_path, const BenchServeOptions& options) {
    std::vector<std::string> argv{"megamoe", "bench", "serve"};
    const std::vector<std::string> words = without_secrets(options.argv);
    argv.insert(argv.end(), words.begin(), words.end());
    RunFacts facts;
    facts.client_command = shell_quote(argv);
    facts.manifest_path = manifest_path;
    facts.flags_json = options.flags_json;
    facts.metadata_json = options.metadata_json;
    facts.tag = options.tag;
    MM_TRY_DONE(write_run(options.output_dir, run, measure, manifest, facts,
                          {.detailed = options.save_detailed, .chunks = options.save_chunks}));
    if (!options.output_file.empty()) {
        for (const LineShape shape : options.emit) {
            MM_TRY_DONE(append_line(options.output_file, compat_line(shape, run, measure, facts)));
        }
    }
    return Done{};
}

}  // namespace

int run_bench_serve(const BenchServeOptions& options, const TokenSourceFactory& load_tokens) {
    const InterruptGuard guard;
    if (const auto folder = make_empty_folder(options.output_dir); !folder) {
        return complain(Exit::kUsage, folder.error());
    }
    fmt::print("target    {} ({})\n", options.measure.target.url(), to_string(options.measure.backend));
    auto opened = open_manifest(options, load_tokens);
    if (!opened) {
        return complain(exit_of_manifest(opened.error()), opened.error());
    }
    const auto manifest_path = keep_manifest(opened.value(), options.output_dir);
    if (!manifest_path) {
        return complain(Exit::kInternal, manifest_path.error());
    }
    const Manifest& manifest = opened.value().manifest;
    fmt::print("manifest  {} ({})\ncontent   {}\n", manifest_path.value(), opened.value().created ? "made" : "verified",
               manifest.content_sha256);
    std::fflush(stdout);

    MeasureOptions measuring = options.measure;
    fill_counts(options, manifest, measuring);
    if (measuring.served_model.empty()) {
        measuring.served_model = options.model;
    }
    auto measured = [&] {
        ProgressLine line(options.quiet);
        measuring.on_progress = [&](std::string_view phase, const Progress& progress) { line.show(phase, progress); };
        return measure(measuring, manifest);
    }();
    if (!measured) {
        return complain(exit_of_measure(measured.error()), measured.error());
    }
    const Measured& run = measured.value();
    if (const auto written = write_results(run, measuring, manifest, manifest_path.value(), options); !written) {
        return complain(Exit::kInternal, written.error());
    }
    fmt::print("{}", run_table(run, measuring, manifest));
    fmt::print("results   {}\n", options.output_dir);
    std::fflush(stdout);
    fmt::print(stderr, "{}", failure_list(run));
    return code(exit_of_run(run, measuring));
}

}  // namespace megamoe::lab
