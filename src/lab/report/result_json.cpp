#include "lab/report/result_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "lab/core/sha256.h"

namespace megamoe::lab {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
}

template <class T>
Json maybe(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

Json summary_json(const Summary& summary) {
    Json json = {{"n", summary.count},      {"mean", maybe(summary.mean)}, {"median", maybe(summary.median)},
                 {"sd", maybe(summary.sd)}, {"min", maybe(summary.min)},   {"max", maybe(summary.max)}};
    for (const Percentile& p : summary.percentiles) {
        json[fmt::format("p{}", p.percent)] = maybe(p.value);
    }
    return json;
}

Json throughput_json(const RunMetrics& metrics) {
    const auto add = [](Json& json, const std::optional<Throughput>& t) {
        json["req_s"] = t ? number(t->req_s) : Json(nullptr);
        json["in_tok_s"] = t ? number(t->in_tok_s) : Json(nullptr);
        json["out_tok_s"] = t ? number(t->out_tok_s) : Json(nullptr);
        json["total_tok_s"] = t ? number(t->total_tok_s) : Json(nullptr);
    };
    Json json;
    add(json, metrics.throughput);
    json["peak_out_tok_s"] = maybe(metrics.peak_out_tok_s);
    Json steady;
    steady["window_s"] = metrics.steady ? Json(metrics.steady->window_s) : Json(nullptr);
    steady["fraction"] = metrics.steady ? Json(metrics.steady->fraction) : Json(nullptr);
    add(steady, metrics.steady ? std::optional(metrics.steady->throughput) : std::nullopt);
    json["steady"] = steady;
    return json;
}

Json latency_json(const RunMetrics& metrics) {
    const Latencies& l = metrics.latency_ms;
    Json itl = summary_json(l.itl);
    itl["basis"] = to_string(metrics.itl_basis);
    return {{"ttft", summary_json(l.ttft)},
            {"ttft_wave0", summary_json(l.ttft_wave0)},
            {"ttft_rest", summary_json(l.ttft_rest)},
            {"ttft_user", summary_json(l.ttft_user)},
            {"tpot", summary_json(l.tpot)},
            {"itl", itl},
            {"icl", summary_json(l.icl)},
            {"e2el", summary_json(l.e2el)},
            {"e2el_user", summary_json(l.e2el_user)},
            {"queue", summary_json(l.queue)},
            {"conn", summary_json(l.conn)}};
}

Json counts_json(const Measured& run) {
    const auto warmup_ok = static_cast<std::int64_t>(run.warmup.size()) - run.warmup_failed;
    return {{"warmup_ok", warmup_ok},
            {"warmup_failed", run.warmup_failed},
            {"sent", run.metrics.sent},
            {"ok", run.metrics.ok},
            {"failed", run.metrics.failed},
            {"by_outcome", run.metrics.by_outcome},
            {"resent", 0}};
}

Json tokens_json(const Measured& run) {
    const RunMetrics& m = run.metrics;
    const bool witnessed = run.counters_before && run.counters_after;
    const auto delta = [&](double ServerCounters::*counter) {
        return witnessed ? number((*run.counters_after).*counter - (*run.counters_before).*counter) : Json(nullptr);
    };
    return {{"in", m.in_tokens},
            {"out", m.out_tokens},
            {"cached", m.cached_tokens},
            {"basis", m.counted_by_server ? "usage" : "requested"},
            {"in_mismatch", m.in_mismatch},
            {"retokenized_out", nullptr},
            {"server_prompt_delta", delta(&ServerCounters::prompt_tokens)},
            {"server_gen_delta", delta(&ServerCounters::generation_tokens)}};
}

Json checks_json(const RunChecks& checks) {
    return {{"complete", checks.complete},
            {"same_prompts", checks.same_prompts},
            {"lengths", checks.lengths},
            {"concurrency", checks.concurrency},
            {"client_fast", checks.client_fast}};
}

Json manifest_json(const Measured& run, const Manifest& manifest, const RunFacts& facts) {
    const auto gz = sha256_of_file(facts.manifest_path);
    return {{"file", facts.manifest_path},
            {"gz_sha256", gz ? Json(gz.value()) : Json(nullptr)},
            {"content_sha256", manifest.content_sha256},
            {"prompts_sha256", manifest.prompts_sha256},
            {"replay_sha256", text_or_null(run.replay_sha256)},
            {"prompt_format", to_string(manifest.format)},
            {"seed", manifest.origin.seed}};
}

Json request_json(const RequestRecord& r, bool with_chunks) {
    Json json = {{"id", r.id},
                 {"role", r.measured ? "measure" : "warmup"},
                 {"outcome", to_string(r.outcome)},
                 {"t_sched_ns", r.t_sched},
                 {"t_slot_ns", r.t_slot},
                 {"t_conn0_ns", r.t_conn0},
                 {"t_conn1_ns", r.t_conn1},
                 {"t_start_ns", r.t_start},
                 {"t_sent_ns", r.t_sent},
                 {"t_head_ns", r.t_head},
                 {"t_role_ns", r.t_role},
                 {"t_first_ns", r.t_first},
                 {"t_last_ns", r.t_last},
                 {"t_end_ns", r.t_end},
                 {"asked_in", r.asked_in},
                 {"asked_out", r.asked_out},
                 {"in", maybe(r.prompt_tokens)},
                 {"out", maybe(r.completion_tokens)},
                 {"cached", maybe(r.cached_tokens)},
                 {"chunks", r.chunks.size()},
                 {"coalesced_events", r.coalesced_events},
                 {"finish_reason", text_or_null(r.finish_reason)},
                 {"text_fnv1a64", fmt::format("{:016x}", r.text_hash)}};
    // A time that never came is unknown, not zero.
    for (auto& [key, value] : json.items()) {
        if (key.starts_with("t_") && value == 0) {
            value = nullptr;
        }
    }
    if (!r.detail.empty()) {
        json["status"] = r.http_status;
        json["detail"] = r.detail;
    }
    if (!r.text.empty()) {
        json["text"] = r.text;
    }
    if (with_chunks) {
        Json times = Json::array();
        Json counts = Json::array();
        for (const Chunk& chunk : r.chunks) {
            times.push_back(chunk.t_ns);
            counts.push_back(chunk.tokens_so_far > 0 ? Json(chunk.tokens_so_far) : Json(nullptr));
        }
        json["chunk_t_ns"] = std::move(times);
        json["chunk_tokens"] = std::move(counts);
    }
    return json;
}

// Text from a server may be anything; a broken character must not cost the whole file.
std::string dump(const Json& json, int indent = -1) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string result_json(const Measured& run, const MeasureOptions& options, const Manifest& manifest,
                        const RunFacts& facts) {
    const RunMetrics& m = run.metrics;
    const RunChecks checks = check_run(run, options);
    const bool in_experiment = facts.block > 0;
    Json goodput_limits = Json::object();
    for (const auto& [name, limit] : options.goodput) {
        goodput_limits[name] = limit;
    }
    Json json = {
        {"schema", "bench.result/1"},
        {"experiment", text_or_null(facts.experiment)},
        {"cell", {{"arm", text_or_null(facts.arm)}, {"workload", text_or_null(facts.workload)}}},
        {"block", in_experiment ? Json(facts.block) : Json(nullptr)},
        {"order_in_block", in_experiment ? Json(facts.order_in_block) : Json(nullptr)},
        {"tag", text_or_null(facts.tag)},
        {"metadata", Json::parse(facts.metadata_json)},
        {"time",
         {{"start_utc", run.started_utc},
          {"t_start_ns", run.pass.t_begin_ns},
          {"t_end_ns", run.pass.t_end_ns},
          {"duration_s", m.throughput ? Json(m.duration_s) : Json(nullptr)}}},
        {"client", {{"flags", Json::parse(facts.flags_json)}, {"rng", "xoshiro256**/v1"}}},
        {"target",
         {{"base_url", options.target.url()},
          {"backend", to_string(options.backend)},
          {"served_model", text_or_null(run.served_model)}}},
        {"manifest", manifest_json(run, manifest, facts)},
        {"counts", counts_json(run)},
        {"tokens", tokens_json(run)},
        {"throughput", throughput_json(m)},
        {"latency_ms", latency_json(m)},
        {"latency_base", options.arrivals || options.trace_arrivals ? "user" : "service"},
        {"mean_tokens_per_chunk", maybe(m.mean_merge)},
        {"mixture", nullptr},
        {"concurrency",
         {{"asked", options.max_concurrency > 0 ? Json(options.max_concurrency) : Json(nullptr)},
          {"mean", number(m.mean_concurrency)},
          {"peak", m.peak_concurrency},
          {"server_running_peak", nullptr}}},
        {"goodput",
         {{"limits", goodput_limits}, {"req_s", maybe(m.goodput_req_s)}, {"fraction", maybe(m.goodput_fraction)}}},
        {"eplb", nullptr},
        {"moe", nullptr},
        {"steps", nullptr},
        {"skew", nullptr},
        {"hostsync", nullptr},
        {"power", nullptr},
        {"clock", nullptr},
        {"flags",
         {{"profiled", false},
          {"trace_level", 0},
          {"aborted", run.pass.interrupted},
          {"gave_up", run.pass.gave_up},
          {"saturated", nullptr},
          {"partial_manifest", run.partial_manifest}}},
        {"checks", checks_json(checks)},
        {"valid", checks.valid()}};
    if (m.mixture) {
        json["mixture"] = {{"stall_share", m.mixture->stall_share},
                           {"low_median_ms", m.mixture->low_median_ms},
                           {"stall_extra_ms", m.mixture->stall_extra_ms}};
    }
    return dump(json, 1) + "\n";
}

std::string requests_jsonl(const Measured& run, bool with_chunks) {
    std::string lines;
    for (const std::vector<RequestRecord>* records : {&run.warmup, &run.pass.records}) {
        for (const RequestRecord& record : *records) {
            lines += dump(request_json(record, with_chunks)) + "\n";
        }
    }
    return lines;
}

std::string client_json(const Measured& run, const MeasureOptions& options) {
    const SelfCheck& self = run.pass.self;
    const Json json = {{"loop_lag_p99_ms", self.loop_lag_p99_ms},
                       {"loop_lag_max_ms", self.loop_lag_max_ms},
                       {"io_thread_cpu_share", self.cpu_share},
                       {"involuntary_switches", self.involuntary_switches},
                       {"events", self.events},
                       {"coalesced_events", self.coalesced_events},
                       {"connections", self.connections},
                       {"tcp_retransmits", self.tcp_retransmits},
                       {"peak_rss_bytes", self.peak_rss_bytes},
                       {"fast_enough", check_run(run, options).client_fast}};
    return dump(json, 1) + "\n";
}

}  // namespace megamoe::lab
