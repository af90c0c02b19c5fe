// One measured pass of a manifest against a server: ready check, warm-up, measurement, figures.
// It writes no files and prints nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/client/arrivals.h"
#include "lab/client/backend.h"
#include "lab/client/load_client.h"
#include "lab/client/request_body.h"
#include "lab/client/server_probe.h"
#include "lab/client/target.h"
#include "lab/manifest/manifest.h"
#include "lab/stats/run_metrics.h"

namespace megamoe::lab {

struct MeasureOptions {
    Target target;
    Backend backend = Backend::kOpenai;
    std::string endpoint;      // empty: the backend's own
    std::string served_model;  // empty: ask the server
    StreamUsage usage = StreamUsage::kFinal;
    bool stream = true;
    std::string extra_body = "{}";
    std::string request_id_prefix;

    std::int64_t num_prompts = 0;           // of the manifest's measured rows
    std::int64_t warmup_requests = 0;       // of its warm-up rows
    bool rolling_warmup = false;            // measured requests follow without a gap
    bool flush_cache = false;               // between warm-up and measurement
    std::int64_t ready_timeout_ms = 60000;  // 0: no ready check

    std::int32_t max_concurrency = 0;        // 0: no bound
    std::optional<ArrivalOptions> arrivals;  // none: closed loop
    bool trace_arrivals = false;             // the manifest's at_us
    double stagger_ms = 0;
    bool reuse_connections = true;
    std::int64_t connect_timeout_ms = 30000;
    std::int64_t idle_timeout_ms = 0;
    std::int64_t total_timeout_ms = std::int64_t{21600} * 1000;
    double max_error_rate = 0;
    bool save_text = false;

    std::vector<double> percents = {50, 90, 95, 99};
    GoodputLimits goodput;
    std::function<void(std::string_view phase, const Progress&)> on_progress;
};

struct Measured {
    PassResult pass;  // empty when the warm-up failed
    RunMetrics metrics;
    std::vector<RequestRecord> warmup;
    std::int64_t warmup_failed = 0;
    std::string served_model;
    std::string replay_sha256;   // over what was put into the bodies of the measured rows that were sent
    bool replay_matches = true;  // ... and over the same rows of the manifest
    std::string started_utc;
    std::optional<ServerCounters> counters_before;
    std::optional<ServerCounters> counters_after;
    std::string server_info;  // JSON, or empty
    bool partial_manifest = false;
};

// Error kInvalidArgument: options and manifest do not fit; kResourceExhausted: too few open files allowed;
//       kUnavailable: the server did not come up or does not answer; kFailedPrecondition: it counts another number of
//       prompt tokens than the manifest says (other tokenizer, template or BOS rule)
// Spec  bench.md 3, 5, 7.3 and 8
[[nodiscard]] Result<Measured> measure(const MeasureOptions& options, const Manifest& manifest);

}  // namespace megamoe::lab
