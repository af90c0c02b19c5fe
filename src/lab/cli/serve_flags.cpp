// parse_bench_serve: every flag of `megamoe bench serve`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "lab/cli.h"
#include "lab/cli/flags.h"
#include "lab/cli/generate_flags.h"

namespace megamoe::lab {
namespace {

// Values as they are written; turned into options once everything is known.
struct Raw {
    std::string backend = "openai";
    std::string base_url;
    std::string host = "127.0.0.1";
    std::uint16_t port = 30000;
    std::vector<std::string> headers;
    std::string api_key_env;
    double ready_check_timeout_s = 60;
    bool trust_remote_code = false;
    std::string request_rate = "inf";
    std::string burstiness = "1";
    std::string arrival = "gamma";
    std::string schedule_rescale = "on";
    std::string ramp_up_strategy;
    double ramp_up_start_rps = 0;
    double ramp_up_end_rps = 0;
    std::string warmup_mode = "drain";
    double timeout_s = 21600;
    double connect_timeout_s = 30;
    double idle_timeout_s = 0;
    std::string connection_reuse = "pool";
    bool disable_stream = false;
    std::string percentiles = "50,90,95,99";
    std::vector<std::string> goodput;
    std::string stream_usage = "auto";
    std::string token_counts = "auto";
    std::string verify_tokens = "usage";
    std::string emit;
    std::string manifest_mode = "auto";
    std::vector<std::string> metadata;
    std::string percentile_metrics;
};

void add_target_flags(CLI::App& app, BenchServeOptions& options, Raw& raw) {
    app.add_option("--backend,--endpoint-type", raw.backend, "openai, openai-chat or sglang")->group("Target");
    app.add_option("--base-url", raw.base_url, "http://host:port; wins over --host and --port")->group("Target");
    app.add_option("--host", raw.host)->group("Target");
    app.add_option("--port", raw.port)->group("Target");
    app.add_option("--endpoint", options.measure.endpoint, "path, if not the backend's own")->group("Target");
    app.add_option("--model,--model-path", options.model, "model folder; default: ask the server")->group("Target");
    app.add_option("--served-model-name", options.measure.served_model, "what the request body says")->group("Target");
    app.add_option("--tokenizer", options.tokenizer, "model folder whose tokenizer makes the prompts")->group("Target");
    app.add_flag("--trust-remote-code", raw.trust_remote_code, "accepted and ignored: no remote code runs here")
        ->group("Target");
    app.add_option("--header", raw.headers, "K:V, sent with every request, never stored")->group("Target");
    app.add_option("--api-key-env", raw.api_key_env, "environment variable that holds the key")->group("Target");
    app.add_option("--extra-body,--extra-request-body", options.measure.extra_body, "JSON merged into each body")
        ->group("Target");
    app.add_option("--ready-check-timeout-sec", raw.ready_check_timeout_s, "0 = no ready check")->group("Target");
}

void add_load_flags(CLI::App& app, BenchServeOptions& options, Raw& raw) {
    MeasureOptions& m = options.measure;
    app.add_option("--request-rate", raw.request_rate, "requests/s, or inf: as soon as a slot is free")->group("Load");
    app.add_option("--burstiness", raw.burstiness, "gamma shape: 1 Poisson, below 1 bursty, inf constant")
        ->group("Load");
    app.add_option("--arrival", raw.arrival, "gamma, constant or trace")->group("Load");
    app.add_option("--schedule-rescale", raw.schedule_rescale, "on: the last arrival is at n/rate exactly")
        ->group("Load");
    app.add_option("--ramp-up-strategy", raw.ramp_up_strategy, "linear or exponential")->group("Load");
    app.add_option("--ramp-up-start-rps", raw.ramp_up_start_rps)->group("Load");
    app.add_option("--ramp-up-end-rps", raw.ramp_up_end_rps)->group("Load");
    app.add_option("--max-concurrency", m.max_concurrency, "requests in flight at most")->group("Load");
    app.add_option("--stagger-ms", m.stagger_ms, "spread the first wave over this time")->group("Load");
    app.add_option("--warmup-mode", raw.warmup_mode, "drain or rolling")->group("Load");
    app.add_flag("--flush-cache", m.flush_cache, "between warm-up and measurement")->group("Load");
    app.add_option("--timeout-s", raw.timeout_s, "for a whole request")->group("Load");
    app.add_option("--connect-timeout-s", raw.connect_timeout_s)->group("Load");
    app.add_option("--idle-timeout-s", raw.idle_timeout_s, "without a byte; 0 = no limit")->group("Load");
    app.add_option("--max-error-rate", m.max_error_rate, "give up beyond it, after 32 requests")->group("Load");
    app.add_option("--connection-reuse", raw.connection_reuse, "pool or request")->group("Load");
}

void add_output_flags(CLI::App& app, BenchServeOptions& options, Raw& raw) {
    app.add_option("--prompt-manifest", options.manifest_path, "replayed if it exists, else made and kept")
        ->group("Data");
    app.add_option("--manifest-mode", raw.manifest_mode, "auto, load or create")->group("Data");
    app.add_flag("--disable-stream", raw.disable_stream, "one answer at the end: no TTFT, no ITL")->group("Sampling");
    app.add_option("--percentile-metrics", raw.percentile_metrics, "accepted; all metrics are written")
        ->group("Output");
    app.add_option("--metric-percentiles", raw.percentiles)->group("Output");
    app.add_option("--goodput", raw.goodput, "ttft:MS tpot:MS e2el:MS, all must hold")->group("Output");
    app.add_option("--stream-usage", raw.stream_usage, "auto, off, final or continuous")->group("Output");
    app.add_option("--token-counts", raw.token_counts, "auto, or exact: ask for a count in every chunk")
        ->group("Output");
    app.add_option("--verify-tokens", raw.verify_tokens, "usage or none")->group("Output");
    app.add_option("--output-dir", options.output_dir, "new folder for the results")->group("Output");
    app.add_option("--output-file", options.output_file, "append one line in another tool's shape")->group("Output");
    app.add_option("--emit", raw.emit, "shapes of that line: sglang,vllm")->group("Output");
    app.add_flag("--save-detailed,--output-details,!--no-save-detailed", options.save_detailed)->group("Output");
    app.add_flag("--save-chunks", options.save_chunks, "chunk times in requests.jsonl")->group("Output");
    app.add_flag("--save-text", options.measure.save_text, "generated text in requests.jsonl")->group("Output");
    app.add_option("--metadata", raw.metadata, "K=V, kept in the result")->group("Output");
    app.add_option("--tag", options.tag)->group("Output");
    app.add_option("--request-id-prefix", options.measure.request_id_prefix)->group("Output");
    app.add_flag("--disable-tqdm", options.quiet, "no progress lines")->group("Output");
}

const Unsupported& unsupported() {
    static const Unsupported kList = [] {
        Unsupported list = GenerateFlags::unsupported();
        const Unsupported own{{"--insecure", "there is no TLS here"},
                              {"--source-ip", "connections are pooled, so ports do not run out"},
                              {"--io-threads", "one thread drives all streams; client.json says if it was the limit"},
                              {"--cpu-affinity", "start the program under taskset instead"},
                              {"--steady-window", "the window is found by itself, see steady in result.json"},
                              {"--scrape-metrics", "counters are read before and after the measurement"},
                              {"--profile-window", "start the profile by hand; a profiled run must not be compared"},
                              {"--logprobs", "it changes the work of the server"},
                              {"--print-requests", "requests.jsonl lists them"},
                              {"--stale-resend", "nothing is ever sent twice"},
                              {"--session-concurrency", "multi-turn data sets are not built in"},
                              {"--turn-gap-scale", "multi-turn data sets are not built in"}};
        list.insert(list.end(), own.begin(), own.end());
        return list;
    }();
    return kList;
}

Result<double> positive_or_inf(const char* flag, const std::string& text) {
    if (text == "inf") {
        return std::numeric_limits<double>::infinity();
    }
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value > 0)) {
        return invalid(fmt::format("{} {} is not a number above 0", flag, text), "or write inf");
    }
    return value;
}

Result<Done> one_of(const char* flag, const std::string& value, std::initializer_list<std::string_view> allowed) {
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) {
        return Done{};
    }
    std::string list;
    for (const std::string_view word : allowed) {
        list += (list.empty() ? "" : ", ") + std::string(word);
    }
    return invalid(std::string(flag) + " " + value + " is not known", "use one of: " + list);
}

Result<Done> resolve_target(const Raw& raw, MeasureOptions& m) {
    MM_TRY(m.backend, backend_of(raw.backend));
    MM_TRY(m.target,
           parse_base_url(raw.base_url.empty() ? fmt::format("http://{}:{}", raw.host, raw.port) : raw.base_url));
    for (const std::string& header : raw.headers) {
        const std::size_t colon = header.find(':');
        if (colon == std::string::npos || colon == 0 || header.find_first_of("\r\n") != std::string::npos) {
            return invalid("--header '" + header.substr(0, colon) + "' is not of the form K:V");
        }
        const std::size_t begin = header.find_first_not_of(' ', colon + 1);
        m.target.headers.emplace_back(header.substr(0, colon), begin == std::string::npos ? "" : header.substr(begin));
    }
    if (!raw.api_key_env.empty()) {
        const char* key = std::getenv(raw.api_key_env.c_str());
        if (key == nullptr) {
            return invalid("--api-key-env " + raw.api_key_env + ": no such environment variable");
        }
        m.target.headers.emplace_back("Authorization", std::string("Bearer ") + key);
    }
    m.ready_timeout_ms = static_cast<std::int64_t>(raw.ready_check_timeout_s * 1000);
    return Done{};
}

Result<Done> resolve_arrivals(const Raw& raw, std::uint64_t seed, MeasureOptions& m) {
    MM_TRY_DONE(one_of("--arrival", raw.arrival, {"gamma", "constant", "trace"}));
    MM_TRY_DONE(one_of("--schedule-rescale", raw.schedule_rescale, {"on", "off"}));
    MM_TRY_DONE(one_of("--ramp-up-strategy", raw.ramp_up_strategy, {"", "linear", "exponential"}));
    MM_TRY(const double rate, positive_or_inf("--request-rate", raw.request_rate));
    MM_TRY(const double burstiness, positive_or_inf("--burstiness", raw.burstiness));
    m.trace_arrivals = raw.arrival == "trace";
    if (m.trace_arrivals) {
        return m.max_concurrency == 0
                   ? Result<Done>(Done{})
                   : invalid("--max-concurrency contradicts --arrival trace: a replay does not wait");
    }
    if (std::isinf(rate) && raw.ramp_up_strategy.empty()) {
        return Done{};
    }
    ArrivalOptions arrivals{
        .rate = rate,
        .burstiness = raw.arrival == "constant" ? std::numeric_limits<double>::infinity() : burstiness,
        .rescale = raw.schedule_rescale == "on",
        .ramp_up = std::nullopt,
        .seed = seed};
    if (!raw.ramp_up_strategy.empty()) {
        if (!(raw.ramp_up_start_rps > 0) || !(raw.ramp_up_end_rps > 0)) {
            return invalid("--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps above 0");
        }
        arrivals.ramp_up = RampUp{.exponential = raw.ramp_up_strategy == "exponential",
                                  .start_rps = raw.ramp_up_start_rps,
                                  .end_rps = raw.ramp_up_end_rps};
    }
    m.arrivals = arrivals;
    return Done{};
}

Result<Done> resolve_load(const Raw& raw, MeasureOptions& m) {
    MM_TRY_DONE(one_of("--warmup-mode", raw.warmup_mode, {"drain", "rolling"}));
    MM_TRY_DONE(one_of("--connection-reuse", raw.connection_reuse, {"pool", "request"}));
    if (m.max_concurrency < 0 || m.stagger_ms < 0 || m.max_error_rate < 0 || raw.timeout_s <= 0) {
        return invalid(
            "--max-concurrency, --stagger-ms and --max-error-rate may not be negative, --timeout-s must be above 0");
    }
    m.rolling_warmup = raw.warmup_mode == "rolling";
    if (m.rolling_warmup && m.flush_cache) {
        return invalid("--flush-cache needs a gap between warm-up and measurement", "use --warmup-mode drain");
    }
    m.reuse_connections = raw.connection_reuse == "pool";
    m.total_timeout_ms = static_cast<std::int64_t>(raw.timeout_s * 1000);
    m.connect_timeout_ms = static_cast<std::int64_t>(raw.connect_timeout_s * 1000);
    m.idle_timeout_ms = static_cast<std::int64_t>(raw.idle_timeout_s * 1000);
    m.stream = !raw.disable_stream;
    return Done{};
}

Result<Done> resolve_metrics(const Raw& raw, MeasureOptions& m) {
    MM_TRY_DONE(one_of("--stream-usage", raw.stream_usage, {"auto", "off", "final", "continuous"}));
    MM_TRY_DONE(one_of("--token-counts", raw.token_counts, {"auto", "exact"}));
    MM_TRY_DONE(one_of("--verify-tokens", raw.verify_tokens, {"usage", "none"}));
    const bool continuous =
        raw.stream_usage == "continuous" || (raw.stream_usage == "auto" && raw.token_counts == "exact");
    m.usage = continuous                  ? StreamUsage::kContinuous
              : raw.stream_usage == "off" ? StreamUsage::kOff
                                          : StreamUsage::kFinal;
    m.percents.clear();
    for (const std::string& part : split_list(raw.percentiles)) {
        MM_TRY(const double percent, positive_or_inf("--metric-percentiles", part));
        if (percent >= 100) {
            return invalid("--metric-percentiles " + part + " is not below 100");
        }
        m.percents.push_back(percent);
    }
    for (const std::string& item : raw.goodput) {
        const std::size_t colon = item.find(':');
        const std::string name = item.substr(0, colon);
        MM_TRY_DONE(one_of("--goodput", name, {"ttft", "tpot", "e2el", "ttft_user", "e2el_user"}));
        MM_TRY(m.goodput[name], positive_or_inf("--goodput", colon == std::string::npos ? "" : item.substr(colon + 1)));
    }
    return Done{};
}

Result<Done> resolve_output(const Raw& raw, BenchServeOptions& options) {
    MM_TRY_DONE(one_of("--manifest-mode", raw.manifest_mode, {"auto", "load", "create"}));
    options.manifest_mode = raw.manifest_mode == "load"     ? ManifestMode::kLoad
                            : raw.manifest_mode == "create" ? ManifestMode::kCreate
                                                            : ManifestMode::kAuto;
    while (options.output_dir.size() > 1 && options.output_dir.ends_with('/')) {
        options.output_dir.pop_back();
    }
    if (options.output_dir.empty()) {
        return invalid("--output-dir is missing", "name a new folder for the results");
    }
    if (options.manifest_mode == ManifestMode::kLoad && options.manifest_path.empty()) {
        return invalid("--manifest-mode load needs --prompt-manifest");
    }
    for (const std::string& shape : split_list(raw.emit.empty() ? "sglang" : raw.emit)) {
        MM_TRY_DONE(one_of("--emit", shape, {"sglang", "vllm"}));
        options.emit.push_back(shape == "vllm" ? LineShape::kVllm : LineShape::kSglang);
    }
    nlohmann::ordered_json metadata = nlohmann::ordered_json::object();
    for (const std::string& item : raw.metadata) {
        const std::size_t equals = item.find('=');
        if (equals == std::string::npos) {
            return invalid("--metadata " + item + " is not of the form K=V");
        }
        metadata[item.substr(0, equals)] = item.substr(equals + 1);
    }
    options.metadata_json = metadata.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return Done{};
}

// Every flag with its value, given or default; header values may hold secrets and stay out.
std::string resolved_flags(const CLI::App& app) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_lnames().empty() || option->get_lnames().front() == "help") {
            continue;
        }
        const std::string& name = option->get_lnames().front();
        const std::vector<std::string> values =
            option->count() > 0 ? option->reduced_results() : std::vector<std::string>();
        if (name == "header") {
            json[name] = values.size();
        } else if (values.size() > 1) {
            json[name] = values;
        } else {
            json[name] = values.empty() ? option->get_default_str() : values.front();
        }
    }
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<BenchServeOptions> parse_bench_serve(const std::vector<std::string>& args) {
    BenchServeOptions options;
    options.argv = args;
    Raw raw;
    CLI::App app("Replay prompts against a server and measure.", "megamoe bench serve");
    app.option_defaults()->always_capture_default();
    add_target_flags(app, options, raw);
    add_load_flags(app, options, raw);
    GenerateFlags generate(app, options.generate);
    add_output_flags(app, options, raw);
    if (std::find(args.begin(), args.end(), "--help") != args.end()) {
        options.help = app.help();
        return options;
    }
    MM_TRY_DONE(parse_flags(app, args, unsupported()));
    options.given = given_flags(app);
    MM_TRY_DONE(generate.finish(options.given));
    MM_TRY_DONE(resolve_target(raw, options.measure));
    MM_TRY_DONE(resolve_arrivals(raw, options.generate.seed, options.measure));
    MM_TRY_DONE(resolve_load(raw, options.measure));
    MM_TRY_DONE(resolve_metrics(raw, options.measure));
    MM_TRY_DONE(resolve_output(raw, options));
    options.flags_json = resolved_flags(app);
    return options;
}

}  // namespace megamoe::lab
