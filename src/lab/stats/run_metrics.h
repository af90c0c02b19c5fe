// What a measured pass says: throughput, latency summaries, concurrency, steady state. Pure functions of the records.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/client/request_record.h"
#include "lab/stats/distribution.h"
#include "lab/stats/request_metrics.h"

namespace megamoe::lab {

// A request is good if every limit holds, in milliseconds. Names: ttft, tpot, e2el, ttft_user, e2el_user.
using GoodputLimits = std::map<std::string, double>;

struct MetricOptions {
    std::vector<double> percents = {50, 90, 95, 99};
    GoodputLimits goodput = {};
    std::int32_t max_concurrency = 0;  // 0: unknown or unbounded
    bool open_loop = false;
};

struct Throughput {
    double req_s = 0;
    double in_tok_s = 0;
    double out_tok_s = 0;
    double total_tok_s = 0;
};

// The longest stretch in which at least 95 % of the concurrency was in use. Spec  bench.md 6.4
struct Steady {
    double window_s = 0;
    double fraction = 0;  // of the makespan
    Throughput throughput;
};

struct Latencies {
    Summary ttft;
    Summary ttft_wave0;  // requests of the first wave: all slots started together
    Summary ttft_rest;
    Summary ttft_user;
    Summary tpot;
    Summary itl;
    Summary icl;
    Summary e2el;
    Summary e2el_user;
    Summary queue;
    Summary conn;
};

struct RunMetrics {
    std::int64_t sent = 0;
    std::int64_t ok = 0;
    std::int64_t failed = 0;  // sent or not, everything that is not ok
    std::map<std::string, std::int64_t> by_outcome;
    std::uint64_t in_tokens = 0;  // of ok requests
    std::uint64_t out_tokens = 0;
    std::uint64_t cached_tokens = 0;
    bool counted_by_server = true;         // false: at least one ok request came without usage
    std::int64_t in_mismatch = 0;          // ok requests whose prompt the server counted otherwise
    double duration_s = 0;                 // first start to last token
    std::optional<Throughput> throughput;  // none: nothing succeeded
    std::optional<Steady> steady;
    Latencies latency_ms;
    ItlBasis itl_basis = ItlBasis::kUnknown;  // the weakest over all requests
    std::optional<double> mean_merge;
    std::optional<GapMixture> mixture;
    double mean_concurrency = 0;
    std::int64_t peak_concurrency = 0;
    std::optional<double> peak_out_tok_s;  // best whole second
    std::optional<double> goodput_req_s;
    std::optional<double> goodput_fraction;
};

// In    records  warm-up records among them are left out
// Spec  bench.md 6.2 to 6.4
RunMetrics run_metrics(std::span<const RequestRecord> records, const MetricOptions& options);

}  // namespace megamoe::lab
