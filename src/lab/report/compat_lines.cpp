#include "lab/report/compat_lines.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace megamoe::lab {
namespace {

using Json = nlohmann::ordered_json;

Json maybe(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

void add_latency(Json& json, const std::string& name, const Summary& summary) {
    json["mean_" + name + "_ms"] = maybe(summary.mean);
    json["median_" + name + "_ms"] = maybe(summary.median);
    json["std_" + name + "_ms"] = maybe(summary.sd);
    for (const Percentile& p : summary.percentiles) {
        json[fmt::format("p{}_{}_ms", p.percent, name)] = maybe(p.value);
    }
}

void add_latencies(Json& json, const Latencies& latency) {
    add_latency(json, "ttft", latency.ttft);
    add_latency(json, "tpot", latency.tpot);
    add_latency(json, "itl", latency.icl);
    add_latency(json, "e2el", latency.e2el);
}

Json sglang_line(const Measured& run, const MeasureOptions& options, const Throughput& t) {
    const RunMetrics& m = run.metrics;
    Json json = {{"converter", "megamoe/sglang"},
                 {"backend", to_string(options.backend)},
                 {"request_rate", options.arrivals ? Json(options.arrivals->rate) : Json("inf")},
                 {"max_concurrency", options.max_concurrency > 0 ? Json(options.max_concurrency) : Json(nullptr)},
                 {"completed", m.ok},
                 {"duration", m.duration_s},
                 {"total_input_tokens", m.in_tokens},
                 {"total_output_tokens", m.out_tokens},
                 {"request_throughput", t.req_s},
                 {"input_throughput", t.in_tok_s},
                 {"output_throughput", t.out_tok_s},
                 {"total_throughput", t.total_tok_s},
                 {"concurrency", m.mean_concurrency}};
    add_latencies(json, m.latency_ms);
    const Summary& e2el = m.latency_ms.e2el;
    json["mean_e2e_latency_ms"] = maybe(e2el.mean);
    json["median_e2e_latency_ms"] = maybe(e2el.median);
    json["p99_e2e_latency_ms"] = maybe(e2el.at(99));
    return json;
}

Json vllm_line(const Measured& run, const MeasureOptions& options, const Throughput& t) {
    const RunMetrics& m = run.metrics;
    Json json = {{"converter", "megamoe/vllm"},
                 {"date", run.started_utc},
                 {"backend", to_string(options.backend)},
                 {"model_id", run.served_model},
                 {"num_prompts", options.num_prompts},
                 {"request_rate", options.arrivals ? Json(options.arrivals->rate) : Json("inf")},
                 {"max_concurrency", options.max_concurrency > 0 ? Json(options.max_concurrency) : Json(nullptr)},
                 {"duration", m.duration_s},
                 {"completed", m.ok},
                 {"failed", m.failed},
                 {"total_input_tokens", m.in_tokens},
                 {"total_output_tokens", m.out_tokens},
                 {"request_throughput", t.req_s},
                 {"request_goodput", maybe(m.goodput_req_s)},
                 {"output_throughput", t.out_tok_s},
                 {"total_token_throughput", t.total_tok_s},
                 {"max_concurrent_requests", m.peak_concurrency}};
    add_latencies(json, m.latency_ms);
    return json;
}

}  // namespace

std::string compat_line(LineShape shape, const Measured& run, const MeasureOptions& options, const RunFacts& facts) {
    const Throughput throughput = run.metrics.throughput.value_or(Throughput{});
    Json json =
        shape == LineShape::kSglang ? sglang_line(run, options, throughput) : vllm_line(run, options, throughput);
    if (!facts.tag.empty()) {
        json["tag"] = facts.tag;
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Done> append_line(const std::string& path, const std::string& line) {
    std::ofstream file(path, std::ios::app);
    file << line << "\n";
    if (!file.flush()) {
        return invalid("cannot append to " + path, "check the folder and its permissions");
    }
    return Done{};
}

}  // namespace megamoe::lab
