#include "lab/arms/ab_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "lab/arms/server_process.h"
#include "lab/core/interrupt.h"
#include "lab/report/run_table.h"
#include "lab/report/write_run.h"

namespace megamoe::lab {
namespace {

class Runner {
  public:
    Runner(const AbOptions& options, const Manifest& manifest, Experiment& experiment)
        : options_(options), manifest_(manifest), experiment_(experiment) {}

    Result<Done> run_all() {
        for (int block = 0; block < options_.repeats; ++block) {
            int order = 0;
            for (const std::size_t arm : order_in_block(options_.arms.size(), block)) {
                MM_TRY_DONE(run_one(arm, block + 1, ++order));
            }
        }
        return Done{};
    }

  private:
    Result<Done> run_one(std::size_t arm_index, int block, int order) {
        const Arm& arm = options_.arms[arm_index];
        const std::string name = fmt::format("{:02}-{}", experiment_.runs.size() + 1, arm.name);
        const std::string folder = options_.output_dir + "/runs/" + name;
        const std::string what = fmt::format("repeat {}/{} {}", block, options_.repeats, arm.name);
        const std::int64_t begin = now_ns();
        MM_TRY(ServerProcess server,
               ServerProcess::start(arm.server_argv, options_.output_dir + "/runs/" + name + ".log"));
        MM_TRY(const Target target, server.wait_ready(options_.ready_timeout_ms, [&](double seconds) {
            progress(fmt::format("{}: server starting, {:.0f} s", what, seconds));
        }));
        const double ready_s = static_cast<double>(now_ns() - begin) / 1e9;

        MeasureOptions measuring = options_.measure;
        measuring.target = target;
        measuring.on_progress = [&](std::string_view phase, const Progress& p) {
            progress(fmt::format("{}: {} {}/{}", what, phase, p.finished, p.total));
        };
        auto measured = measure(measuring, manifest_);
        if (!measured) {
            return with_log(measured.error(), server);
        }
        if (!server.is_running()) {
            return with_log({Errc::kUnavailable, what + ": the server died while it was measured", ""}, server);
        }
        const auto stopped = server.stop(options_.grace_ms);
        ExperimentRun run{.arm = arm_index,
                          .block = block,
                          .order_in_block = order,
                          .ready_s = ready_s,
                          .measured = std::move(measured).take(),
                          .checks = {}};
        run.checks = check_run(run.measured, measuring);
        MM_TRY_DONE(write(folder, run, measuring, arm));
        say(what, run);
        experiment_.runs.push_back(std::move(run));
        if (interrupted()) {
            return Error{Errc::kUnavailable, "interrupted", ""};
        }
        return stopped;
    }

    Result<Done> write(const std::string& folder, const ExperimentRun& run, const MeasureOptions& measuring,
                       const Arm& arm) {
        RunFacts facts;
        facts.experiment = options_.experiment;
        facts.arm = arm.name;
        facts.block = run.block;
        facts.order_in_block = run.order_in_block;
        facts.client_command = options_.client_command;
        facts.server_command = shell_quote(arm.server_argv);
        facts.manifest_path = options_.manifest_path;
        return write_run(folder, run.measured, measuring, manifest_, facts, {.detailed = true, .chunks = false});
    }

    static Error with_log(const Error& error, const ServerProcess& server) {
        constexpr int kShownLines = 8;
        return {error.code, error.what + "; the server's last words:\n" + server.last_log_lines(kShownLines),
                error.hint};
    }

    void progress(const std::string& text) const {
        if (options_.on_progress) {
            options_.on_progress(text);
        }
    }

    void say(const std::string& what, const ExperimentRun& run) const {
        if (!options_.on_event) {
            return;
        }
        const RunMetrics& m = run.measured.metrics;
        const auto throughput = m.throughput.value_or(Throughput{});
        options_.on_event(fmt::format(
            "{}: {:.3f} req/s, {:.0f} output tok/s, {} ok, {} failed{}", what, throughput.req_s, throughput.out_tok_s,
            m.ok, m.failed + run.measured.warmup_failed, run.checks.valid() ? "" : " (not valid, left out)"));
    }

    const AbOptions& options_;
    const Manifest& manifest_;
    Experiment& experiment_;
};

}  // namespace

std::vector<std::size_t> order_in_block(std::size_t num_arms, int block) {
    std::vector<std::size_t> order(num_arms);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (block % 2 == 1) {
        std::reverse(order.begin(), order.end());
    }
    return order;
}

Result<Done> run_arms(const AbOptions& options, const Manifest& manifest, Experiment& experiment) {
    experiment.prompts_sha256 = manifest.prompts_sha256;
    experiment.manifest_path = options.manifest_path;
    for (const Arm& arm : options.arms) {
        experiment.arms.push_back({.name = arm.name, .server_command = shell_quote(arm.server_argv)});
    }
    std::error_code error;
    std::filesystem::create_directories(options.output_dir + "/runs", error);
    if (error) {
        return invalid("cannot make folder " + options.output_dir + "/runs: " + error.message());
    }
    return Runner(options, manifest, experiment).run_all();
}

}  // namespace megamoe::lab
