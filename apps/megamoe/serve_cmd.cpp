// megamoe serve: configuration, port, weights, engine, in this order, so that what can be wrong is said before it costs
// time.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/workers.h"
#include "cli.h"
#include "compute/cpu/isa.h"
#include "config/serve_check.h"
#include "config/serve_flags.h"
#include "config/settings.h"
#include "engine/engine.h"
#include "frontend/router/engine_backend.h"
#include "frontend/server.h"
#include "frontend/text/tokenizer.h"
#include "lab/core/files.h"
#include "model/loaded_model.h"

namespace megamoe::apps {
namespace {

constexpr std::string_view kCommand = "serve";

struct Plan {
    ServeOptions options;
    ModelGeometry geometry;
};

Settings read_config_file(const std::vector<Setting>& flags) {
    const auto named = std::find_if(flags.rbegin(), flags.rend(), [](const Setting& s) { return s.flag == "config"; });
    if (named == flags.rend()) {
        return {};
    }
    const auto text = lab::read_file(named->value);
    if (!text) {
        return {{}, {{"CFG-43", Severity::kRefuse, "--config", named->value, {}, to_string(text.error()), {}}}};
    }
    return parse_toml(text.value());
}

// How many files this process may open, after raising its own soft limit to the hard one.
std::int64_t raise_file_limit() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    return static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
}

MachineFacts look_at_machine() {
    return {.cores = static_cast<std::int32_t>(std::max(1U, std::thread::hardware_concurrency())),
            .file_limit = raise_file_limit()};
}

void check_isa(ServeOptions& options, std::vector<Finding>& findings) {
    if (options.engine.isa.empty()) {
        options.engine.isa = cpu::name(cpu::detect_isa());
        options.origins["isa"] = Origin::kDerived;
    } else if (const auto isa = cpu::parse_isa(options.engine.isa); !isa) {
        findings.push_back(
            {"CFG-43", Severity::kRefuse, "--isa", options.engine.isa, {}, isa.error().what, isa.error().hint});
    }
}

// Everything up to allocation. All findings are in `findings`; the plan is usable if none refuses.
Plan make_plan(std::span<const std::string> args, std::vector<Finding>& findings) {
    Plan plan;
    const Settings flags = parse_flags(args);
    const Settings file = read_config_file(flags.values);
    for (const Settings* part : {&file, &flags}) {
        findings.insert(findings.end(), part->findings.begin(), part->findings.end());
        apply_settings(part->values, plan.options, findings);
    }
    if (plan.options.model_path.empty()) {
        findings.push_back({"CFG-47",
                            Severity::kRefuse,
                            "--model-path",
                            {},
                            {},
                            "no model is named",
                            "name a checkpoint folder, such as --model-path models/mini"});
        return plan;
    }
    const auto text = lab::read_file(plan.options.model_path + "/config.json");
    auto geometry = text ? parse_model_geometry(text.value()) : Result<ModelGeometry>(text.error());
    if (!geometry) {
        findings.push_back({"CFG-47",
                            Severity::kRefuse,
                            "--model-path",
                            plan.options.model_path,
                            {},
                            geometry.error().what,
                            geometry.error().hint});
        return plan;
    }
    plan.geometry = std::move(geometry).take();
    const MachineFacts machine = look_at_machine();
    derive_options(plan.options, plan.geometry, machine, findings);
    const auto problems = check_options(plan.options, plan.geometry, machine);
    findings.insert(findings.end(), problems.begin(), problems.end());
    check_isa(plan.options, findings);
    return plan;
}

// The options for /server_info: numbers and booleans as such, the secret left out.
std::string options_json(const ServeOptions& options) {
    nlohmann::json object;
    for (const Setting& setting : parse_toml(print_options(options)).values) {
        const auto value = nlohmann::json::parse(setting.value, nullptr, /*allow_exceptions=*/false);
        std::string key = setting.flag;
        std::replace(key.begin(), key.end(), '-', '_');
        object[key] = value.is_number() || value.is_boolean() ? value : nlohmann::json(setting.value);
    }
    return object.dump();
}

void set_up_log(const ServeOptions& options) {
    log::set_json(options.log_format == "json");
    log::set_level(options.log_level == "debug"     ? log::Level::kDebug
                   : options.log_level == "warning" ? log::Level::kWarn
                   : options.log_level == "error"   ? log::Level::kError
                                                    : log::Level::kInfo);
}

double seconds_since(std::int64_t start_ns) {
    return static_cast<double>(now_ns() - start_ns) * 1e-9;
}

Result<std::shared_ptr<const model::LoadedModel>> load_model(const ServeOptions& options) {
    const std::int64_t start = now_ns();
    Workers workers(options.engine.num_ranks * options.engine.threads_per_rank);
    MM_TRY(auto model, model::LoadedModel::load(options.model_path, workers, log::info));
    log::info(fmt::format("event=model_loaded path={} packed_mib={} seconds={:.1f}", options.model_path,
                          model->bytes() >> 20, seconds_since(start)));
    return model;
}

Result<Done> serve(const Plan& plan) {
    const ServeOptions& options = plan.options;
    MM_TRY(const auto method, router::parse_balance_method(options.load_balance_method));
    MM_TRY(auto tokenizer, text::Tokenizer::load(options.model_path + "/tokenizer.json"));

    // Declared before the server, so destroyed after it: the engine calls into requests that the server owns.
    std::unique_ptr<engine::Engine> engine;
    router::EngineBackend backend;
    frontend::ServerOptions server_options{.host = options.host,
                                           .port = options.port,
                                           .api_key = options.api_key,
                                           .load_balance_method = method,
                                           .max_connections = options.max_connections,
                                           .drain_timeout_ms = std::int64_t{1000} * options.drain_timeout};
    frontend::ModelInfo info{.served_name = options.served_model_name,
                             .model_path = options.model_path,
                             .context_length = options.engine.context_length,
                             .vocab_size = plan.geometry.vocab_size,
                             .num_ranks = options.engine.num_ranks,
                             .config_json = options_json(options)};
    MM_TRY(auto server, frontend::Server::start(server_options, backend, std::move(tokenizer), std::move(info)));
    log::info(fmt::format("event=listening host={} port={}", options.host, server->port()));

    MM_TRY(auto model, load_model(options));
    const std::int64_t start = now_ns();
    MM_TRY(engine, engine::Engine::start(options.engine, std::move(model)));
    backend.attach(*engine);
    log::info(fmt::format("event=ready url=http://{}:{} ranks={} isa={} seconds={:.1f}", options.host, server->port(),
                          options.engine.num_ranks, options.engine.isa, seconds_since(start)));
    return server->run_until_signal();
}

void print_help() {
    fmt::print(
        "usage: megamoe serve --model-path DIR [FLAGS]\n\n"
        "Serves a checkpoint over an OpenAI-compatible API on several expert-parallel ranks of this machine.\n"
        "Defaults stand in brackets. Order: defaults < --config FILE < flags.\n{}",
        help_text());
}

}  // namespace

int serve_command(int argc, char** argv) {
    const std::vector<std::string> args(argv + 1, argv + argc);
    if (std::any_of(args.begin(), args.end(), [](const auto& arg) { return arg == "--help" || arg == "-h"; })) {
        print_help();
        return kExitDone;
    }
    std::vector<Finding> findings;
    const Plan plan = make_plan(args, findings);
    for (const Finding& finding : findings) {
        fmt::print(stderr, "{}\n", to_string(finding));
    }
    if (refuses(findings)) {
        fmt::print(
            stderr,
            "megamoe serve: the configuration is refused, see above; docs/runbook.md has more on each CFG number\n");
        return kExitUsage;
    }
    const RankShare share = rank_share(plan.options.engine);
    if (plan.options.print_config) {
        fmt::print("{}", print_options(plan.options));
    }
    if (plan.options.print_config || plan.options.dry_run) {
        fmt::print("# each of {} ranks: {} requests at once, {} prefill tokens a step\n", plan.options.engine.num_ranks,
                   share.running_requests, share.prefill_tokens);
    }
    if (plan.options.dry_run) {
        return kExitDone;
    }
    set_up_log(plan.options);
    log::info(
        fmt::format("event=config ranks={} running_requests_per_rank={} prefill_tokens_per_rank={} threads_per_rank={}",
                    plan.options.engine.num_ranks, share.running_requests, share.prefill_tokens,
                    plan.options.engine.threads_per_rank));
    const auto served = serve(plan);
    return served ? static_cast<int>(kExitDone) : fail(kCommand, served.error());
}

}  // namespace megamoe::apps
