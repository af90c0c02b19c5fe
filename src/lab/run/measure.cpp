#include "lab/run/measure.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "lab/client/descriptor_limit.h"
#include "lab/core/interrupt.h"
#include "lab/manifest/row_hash.h"

namespace megamoe::lab {
namespace {

constexpr std::int64_t kMs = 1'000'000;

std::string utc_now() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

// The rows of one role that a pass sends, with their bodies made before any clock runs.
struct Plan {
    std::vector<PlannedRequest> requests;
    std::vector<Digest> sent;      // of the bodies
    std::vector<Digest> expected;  // of the manifest's rows
    std::vector<std::int64_t> at_ns;

    Result<Done> add(const Row& row, const BodyOptions& body_options, const std::string& id_prefix) {
        MM_TRY(std::string body, build_body(row, body_options));
        MM_TRY(const Digest digest, digest_of_body(row.id, body, body_options.backend));
        sent.push_back(digest);
        expected.push_back(expected_digest(row, body_options));
        at_ns.push_back(row.at_us * 1000);
        requests.push_back({.id = id_prefix + row.id,
                            .body = std::move(body),
                            .measured = row.role == Role::kMeasure,
                            .asked_in = row.in,
                            .asked_out = row.out});
        return Done{};
    }
};

class Measurement {
  public:
    Measurement(const MeasureOptions& options, const Manifest& manifest) : options_(options), manifest_(manifest) {
        endpoint_ = options.endpoint.empty() ? std::string(default_endpoint(options.backend)) : options.endpoint;
    }

    Result<Measured> run() {
        MM_TRY_DONE(check_rows());
        MM_TRY_DONE(raise_descriptor_limit(slots()));
        MM_TRY(LoadClient client, LoadClient::create(options_.target, endpoint_));
        MM_TRY_DONE(prepare(client));
        MM_TRY(Plan warmup, plan(Role::kWarmup, options_.warmup_requests));
        MM_TRY(Plan measured, plan(Role::kMeasure, options_.num_prompts));
        if (options_.reuse_connections && options_.max_concurrency > 0) {
            client.open_connections(static_cast<std::int32_t>(slots()), options_.connect_timeout_ms);
        }
        if (!options_.rolling_warmup && !warmup.requests.empty()) {
            if (!warm_up(client, warmup)) {
                return std::move(result_);
            }
        }
        if (options_.flush_cache) {
            MM_TRY_DONE(flush_cache(options_.target));
        }
        result_.counters_before = read_counters(options_.target);
        run_measured(client, options_.rolling_warmup ? std::move(warmup) : Plan(), std::move(measured));
        result_.counters_after = read_counters(options_.target);
        result_.server_info = server_info(options_.target);
        return std::move(result_);
    }

  private:
    std::int64_t slots() const {
        const std::int64_t all = std::max(options_.num_prompts, options_.warmup_requests);
        return options_.max_concurrency > 0 ? std::min<std::int64_t>(options_.max_concurrency, all) : all;
    }

    Result<Done> check_rows() {
        const RowCounts counts = count_rows(manifest_);
        const auto measured = static_cast<std::int64_t>(counts.measure);
        const auto warmup = static_cast<std::int64_t>(counts.warmup);
        if (options_.num_prompts < 1 || options_.num_prompts > measured) {
            return invalid(
                fmt::format("--num-prompts {}: the manifest has {} measured rows", options_.num_prompts, measured),
                "ask for at most that many, or make a larger manifest");
        }
        if (options_.warmup_requests > warmup) {
            return invalid(
                fmt::format("--warmup-requests {}: the manifest has {} warm-up rows", options_.warmup_requests, warmup),
                "ask for at most that many, or make a larger manifest");
        }
        result_.partial_manifest = options_.num_prompts < measured;
        return Done{};
    }

    Result<Done> prepare(LoadClient& client) {
        result_.started_utc = utc_now();
        const std::int64_t deadline = now_ns() + options_.ready_timeout_ms * kMs;
        while (options_.served_model.empty() && options_.backend != Backend::kSglang) {
            auto model = first_model(options_.target);
            if (model) {
                result_.served_model = std::move(model).take();
                break;
            }
            if (now_ns() > deadline || interrupted()) {
                return model.error();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
        }
        if (!options_.served_model.empty()) {
            result_.served_model = options_.served_model;
        }
        body_ = {.backend = options_.backend,
                 .model = result_.served_model,
                 .format = manifest_.format,
                 .sampling = manifest_.sampling,
                 .stream = options_.stream,
                 .usage = options_.usage,
                 .min_tokens = true,
                 .extra_json = options_.extra_body};
        return options_.ready_timeout_ms > 0 ? check_ready(client, deadline) : Done{};
    }

    // One real generation: a ready line in a log has been seen before a crash on the first forward pass. The canary row
    // is used, so that no measured prompt is in the server's cache; its token count is the first proof that both sides
    // tokenize alike.
    Result<Done> check_ready(LoadClient& client, std::int64_t deadline) {
        const Row* row = &manifest_.rows.front();
        for (const Role role : {Role::kMeasure, Role::kWarmup, Role::kCanary}) {
            if (const auto rows = rows_of(manifest_, role); !rows.empty()) {
                row = rows.front();
            }
        }
        Row probe = *row;
        probe.out = 1;
        Plan plan;
        MM_TRY_DONE(plan.add(probe, body_, options_.request_id_prefix + "ready-"));
        PassOptions pass = pass_options("ready check");
        pass.on_progress = nullptr;
        for (;;) {
            const RequestRecord record = client.run(plan.requests, pass).records.front();
            if (record.ok()) {
                return check_prompt_tokens(record);
            }
            const bool hopeless = record.http_status >= 400 && record.http_status < 500 && record.http_status != 429;
            if (hopeless || now_ns() > deadline || interrupted()) {
                return Error{Errc::kUnavailable,
                             fmt::format("{} did not complete one 1-token generation: {} ({})", options_.target.url(),
                                         to_string(record.outcome), record.detail),
                             "check the server's log; --ready-check-timeout-sec sets how long to wait"};
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
        }
    }

    Result<Done> check_prompt_tokens(const RequestRecord& record) const {
        // The chat template adds tokens that the manifest does not know.
        if (options_.backend == Backend::kOpenaiChat || !record.prompt_tokens ||
            *record.prompt_tokens == record.asked_in) {
            return Done{};
        }
        const std::int64_t difference = std::int64_t{*record.prompt_tokens} - record.asked_in;
        return Error{Errc::kFailedPrecondition,
                     fmt::format("the server counts {} prompt tokens where the manifest says {} (row {})",
                                 *record.prompt_tokens, record.asked_in, record.id),
                     difference == 1    ? "it adds a BOS: make the manifest with --bos-policy counted"
                     : difference == -1 ? "it adds no BOS: make the manifest with --bos-policy none"
                                        : "the manifest was made with another tokenizer"};
    }

    Result<Plan> plan(Role role, std::int64_t count) const {
        Plan plan;
        for (const Row* row : rows_of(manifest_, role)) {
            if (static_cast<std::int64_t>(plan.requests.size()) == count) {
                break;
            }
            MM_TRY_DONE(plan.add(*row, body_, options_.request_id_prefix));
        }
        return plan;
    }

    PassOptions pass_options(const char* phase) const {
        PassOptions pass;
        pass.max_concurrency = options_.max_concurrency;
        pass.reuse_connections = options_.reuse_connections;
        pass.read = {
            .stream = options_.stream, .fixed_length = manifest_.sampling.ignore_eos, .save_text = options_.save_text};
        pass.connect_timeout_ms = options_.connect_timeout_ms;
        pass.idle_timeout_ms = options_.idle_timeout_ms;
        pass.total_timeout_ms = options_.total_timeout_ms;
        pass.max_error_rate = options_.max_error_rate;
        if (options_.on_progress) {
            pass.on_progress = [this, phase](const Progress& progress) { options_.on_progress(phase, progress); };
        }
        return pass;
    }

    bool warm_up(LoadClient& client, const Plan& plan) {
        PassResult pass = client.run(plan.requests, pass_options("warm-up"));
        result_.warmup_failed =
            std::count_if(pass.records.begin(), pass.records.end(), [](const RequestRecord& r) { return !r.ok(); });
        result_.warmup = std::move(pass.records);
        result_.pass.interrupted = pass.interrupted;
        return result_.warmup_failed == 0;
    }

    void run_measured(LoadClient& client, Plan warmup, Plan measured) {
        PassOptions pass = pass_options("measure");
        const std::size_t leading = warmup.requests.size();
        if (options_.trace_arrivals) {
            pass.release_ns = measured.at_ns;
            pass.open_loop = true;
        } else if (options_.arrivals) {
            pass.release_ns = arrival_times_ns(leading + measured.requests.size(), *options_.arrivals);
            pass.open_loop = true;
        } else if (options_.stagger_ms > 0) {
            pass.release_ns = staggered_times_ns(static_cast<std::size_t>(slots()), options_.stagger_ms);
        }
        std::vector<PlannedRequest> requests = std::move(warmup.requests);
        std::move(measured.requests.begin(), measured.requests.end(), std::back_inserter(requests));
        result_.pass = client.run(requests, pass);
        std::vector<RequestRecord>& records = result_.pass.records;
        if (leading > 0) {
            const auto border = records.begin() + static_cast<std::ptrdiff_t>(leading);
            result_.warmup.assign(std::move_iterator(records.begin()), std::move_iterator(border));
            records.erase(records.begin(), border);
        }
        prove_replay(measured);
        result_.metrics = run_metrics(records, {.percents = options_.percents,
                                                .goodput = options_.goodput,
                                                .max_concurrency = options_.max_concurrency,
                                                .open_loop = pass.open_loop});
    }

    void prove_replay(const Plan& measured) {
        std::vector<Digest> sent;
        std::vector<Digest> expected;
        for (std::size_t i = 0; i < result_.pass.records.size(); ++i) {
            if (result_.pass.records[i].t_start != 0) {
                sent.push_back(measured.sent[i]);
                expected.push_back(measured.expected[i]);
            }
        }
        result_.replay_sha256 = replay_sha256(sent);
        result_.replay_matches = sent == expected;
    }

    const MeasureOptions& options_;
    const Manifest& manifest_;
    std::string endpoint_;
    BodyOptions body_;
    Measured result_;
};

}  // namespace

Result<Measured> measure(const MeasureOptions& options, const Manifest& manifest) {
    return Measurement(options, manifest).run();
}

}  // namespace megamoe::lab
