#include "frontend/api/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <functional>
#include <utility>

namespace megamoe::api {
namespace {

using engine::FinishReason;
using engine::RankStats;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

const prometheus::Histogram::BucketBoundaries kFirstTokenBuckets{.1, .2, .4, .6, .8, 1,  2,   4,   6,
                                                                 8,  10, 20, 40, 60, 80, 100, 200, 400};
const prometheus::Histogram::BucketBoundaries kGapBuckets{
    .002, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .06, .08, .1, .2, .4, .6, .8, 1, 2, 4, 6, 8};
const prometheus::Histogram::BucketBoundaries kWholeBuckets{.1, .2, .4, .6, .8,  1,   2,   4,   6,    8,    10,
                                                            20, 40, 60, 80, 100, 200, 400, 600, 1200, 1800, 2400};

constexpr std::array kEndings{std::pair{FinishReason::kStop, "stop"}, std::pair{FinishReason::kLength, "length"},
                              std::pair{FinishReason::kAbort, "abort"}, std::pair{FinishReason::kError, "error"}};

// One value of every rank.
struct RankMetric {
    const char* name;
    const char* help;
    MetricType type;
    double (*value)(const RankStats& rank);
};

template <auto kMember>
double member(const RankStats& rank) {
    return static_cast<double>(rank.*kMember);
}

constexpr std::array kRankMetrics{
    RankMetric{"megamoe_num_running_reqs", "Requests that a rank computes", MetricType::Gauge,
               member<&RankStats::running>},
    RankMetric{"megamoe_num_queue_reqs", "Requests that wait on a rank", MetricType::Gauge,
               member<&RankStats::waiting>},
    RankMetric{"megamoe_kv_available_pages", "Free cache pages of a rank", MetricType::Gauge,
               member<&RankStats::free_pages>},
    RankMetric{"megamoe_kv_total_pages", "Cache pages of a rank", MetricType::Gauge, member<&RankStats::total_pages>},
    RankMetric{"megamoe_prompt_tokens_total", "Prompt tokens computed", MetricType::Counter,
               member<&RankStats::prompt_tokens>},
    RankMetric{"megamoe_generation_tokens_total", "Tokens generated", MetricType::Counter,
               member<&RankStats::generated_tokens>},
    RankMetric{"megamoe_num_retracted_requests_total", "Requests put back for lack of pages", MetricType::Counter,
               member<&RankStats::retractions>},
};

// Steps of a rank by what it did in them.
struct PhaseMetric {
    const char* phase;
    std::int64_t RankStats::*steps;
};
constexpr std::array kPhases{PhaseMetric{"extend", &RankStats::extend_steps},
                             PhaseMetric{"decode", &RankStats::decode_steps},
                             PhaseMetric{"idle", &RankStats::idle_steps}};

ClientMetric sample(MetricType type, double value, std::vector<ClientMetric::Label> labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    return metric;
}

void add_ranks(const std::vector<RankStats>& ranks, const std::string& model, std::vector<MetricFamily>& out) {
    for (const RankMetric& metric : kRankMetrics) {
        MetricFamily family{metric.name, metric.help, metric.type, {}};
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            family.metric.push_back(
                sample(metric.type, metric.value(ranks[i]), {{"dp_rank", std::to_string(i)}, {"model", model}}));
        }
        out.push_back(std::move(family));
    }
    MetricFamily steps{"megamoe_steps_total", "Steps of a rank by its phase", MetricType::Counter, {}};
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        for (const PhaseMetric& phase : kPhases) {
            steps.metric.push_back(sample(MetricType::Counter, static_cast<double>(ranks[i].*phase.steps),
                                          {{"dp_rank", std::to_string(i)}, {"model", model}, {"phase", phase.phase}}));
        }
    }
    out.push_back(std::move(steps));
}

void add_loads(const std::vector<router::RankLoad>& loads, const std::string& model, std::vector<MetricFamily>& out) {
    MetricFamily tokens{"megamoe_routed_tokens", "Live tokens as the router counts them", MetricType::Gauge, {}};
    for (std::size_t i = 0; i < loads.size(); ++i) {
        tokens.metric.push_back(sample(MetricType::Gauge, static_cast<double>(loads[i].tokens),
                                       {{"dp_rank", std::to_string(i)}, {"model", model}}));
    }
    out.push_back(std::move(tokens));
}

}  // namespace

struct Metrics::State {
    explicit State(const std::string& name)
        : model(name),
          first_token(
              histogram("megamoe_time_to_first_token_seconds", "Arrival to the first token sent", kFirstTokenBuckets)),
          gap(histogram("megamoe_inter_token_latency_seconds", "Gap between tokens of one choice", kGapBuckets)),
          whole(histogram("megamoe_e2e_request_latency_seconds", "Arrival to the last byte", kWholeBuckets)),
          ended(prometheus::BuildCounter()
                    .Name("megamoe_num_requests_total")
                    .Help("Choices that ended, by reason")
                    .Labels({{"model", name}})
                    .Register(registry)),
          responses(prometheus::BuildCounter()
                        .Name("megamoe_http_responses_total")
                        .Help("HTTP answers by status")
                        .Register(registry)) {
        for (const auto& [reason, word] : kEndings) {
            ended.Add({{"finish_reason", word}});
        }
    }

    prometheus::Histogram& histogram(const char* name, const char* help,
                                     const prometheus::Histogram::BucketBoundaries& buckets) {
        return prometheus::BuildHistogram()
            .Name(name)
            .Help(help)
            .Labels({{"model", model}})
            .Register(registry)
            .Add({}, buckets);
    }

    std::string model;
    prometheus::Registry registry;
    prometheus::Histogram& first_token;
    prometheus::Histogram& gap;
    prometheus::Histogram& whole;
    prometheus::Family<prometheus::Counter>& ended;
    prometheus::Family<prometheus::Counter>& responses;
};

Metrics::Metrics(const std::string& model_name) : state_(std::make_unique<State>(model_name)) {}

Metrics::~Metrics() = default;

void Metrics::observe_first_token(double seconds) {
    state_->first_token.Observe(seconds);
}

void Metrics::observe_tokens(double seconds, std::int32_t tokens) {
    for (std::int32_t i = 0; i < tokens; ++i) {
        state_->gap.Observe(seconds / tokens);
    }
}

void Metrics::observe_end(double seconds, FinishReason reason) {
    state_->whole.Observe(seconds);
    for (const auto& [known, word] : kEndings) {
        if (known == reason) {
            state_->ended.Add({{"finish_reason", word}}).Increment();
        }
    }
}

void Metrics::count_response(int status) {
    state_->responses.Add({{"code", std::to_string(status)}}).Increment();
}

std::string Metrics::render(const Snapshot& snapshot) const {
    std::vector<MetricFamily> families = state_->registry.Collect();
    families.push_back({"megamoe_ready",
                        "1 while requests are taken",
                        MetricType::Gauge,
                        {sample(MetricType::Gauge, snapshot.ready ? 1 : 0, {{"model", state_->model}})}});
    if (!snapshot.ranks.empty()) {
        add_ranks(snapshot.ranks, state_->model, families);
        add_loads(snapshot.loads, state_->model, families);
    }
    return prometheus::TextSerializer().Serialize(families);
}

}  // namespace megamoe::api
