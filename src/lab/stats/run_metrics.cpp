#include "lab/stats/run_metrics.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "lab/stats/inflight.h"

namespace megamoe::lab {
namespace {

double seconds(std::int64_t ns) {
    return static_cast<double>(ns) / 1e9;
}

std::int64_t departure(const RequestRecord& record) {
    return record.ok() ? record.t_last : record.t_end;
}

// Values of one metric over all requests that have it.
class Pool {
  public:
    void add(const std::optional<double>& value) {
        if (value) {
            values_.push_back({*value, 1});
        }
    }
    void add_all(std::span<const WeightedValue> values) { values_.insert(values_.end(), values.begin(), values.end()); }
    Summary summarize(const MetricOptions& options) && {
        return Distribution(std::move(values_)).summarize(options.percents);
    }

  private:
    std::vector<WeightedValue> values_;
};

bool is_good(const RequestMetrics& metrics, const GoodputLimits& limits) {
    const std::map<std::string, std::optional<double>> values{{"ttft", metrics.ttft},
                                                              {"tpot", metrics.tpot},
                                                              {"e2el", metrics.e2el},
                                                              {"ttft_user", metrics.ttft_user},
                                                              {"e2el_user", metrics.e2el_user}};
    return std::all_of(limits.begin(), limits.end(), [&](const auto& limit) {
        const auto found = values.find(limit.first);
        // A one-token answer has no TPOT and cannot miss its limit.
        return found == values.end() || !found->second || *found->second <= limit.second;
    });
}

class Aggregator {
  public:
    Aggregator(std::span<const RequestRecord> records, const MetricOptions& options) : options_(options) {
        for (const RequestRecord& record : records) {
            if (record.measured) {
                records_.push_back(&record);
            }
        }
    }

    RunMetrics aggregate() {
        count();
        find_window();
        add_latencies();
        if (run_.ok > 0 && run_.duration_s > 0) {
            add_throughput();
            add_concurrency();
        }
        return std::move(run_);
    }

  private:
    void count() {
        for (const RequestRecord* record : records_) {
            ++run_.by_outcome[std::string(to_string(record->outcome))];
            run_.sent += record->t_start != 0 ? 1 : 0;
            if (!record->ok()) {
                ++run_.failed;
                continue;
            }
            ++run_.ok;
            run_.in_tokens += record->input_tokens();
            run_.out_tokens += record->output_tokens();
            run_.cached_tokens += record->cached_tokens.value_or(0);
            run_.counted_by_server = run_.counted_by_server && record->completion_tokens && record->prompt_tokens;
            run_.in_mismatch += record->input_tokens() != record->asked_in ? 1 : 0;
        }
    }

    void find_window() {
        std::int64_t begin = std::numeric_limits<std::int64_t>::max();
        std::int64_t end = 0;
        for (const RequestRecord* record : records_) {
            if (record->t_start != 0) {
                begin = std::min(begin, record->t_start);
            }
            if (record->ok()) {
                end = std::max(end, record->t_last);
            }
        }
        if (end > begin) {
            window_ = {begin, end};
            run_.duration_s = seconds(end - begin);
        }
    }

    void add_latencies() {
        Pool ttft, wave0, rest, ttft_user, tpot, itl, icl, e2el, e2el_user, queue, conn, merge;
        std::vector<double> gaps;
        std::int64_t good = 0;
        const std::int64_t first = records_.empty() ? 0 : records_.front()->index;
        run_.itl_basis = run_.ok > 0 ? ItlBasis::kCounted : ItlBasis::kUnknown;
        for (const RequestRecord* record : records_) {
            if (!record->ok()) {
                continue;
            }
            const RequestMetrics metrics = request_metrics(*record);
            ttft.add(metrics.ttft);
            (record->index - first < options_.max_concurrency ? wave0 : rest).add(metrics.ttft);
            ttft_user.add(metrics.ttft_user);
            tpot.add(metrics.tpot);
            itl.add_all(metrics.itl);
            gaps.insert(gaps.end(), metrics.icl.begin(), metrics.icl.end());
            e2el.add(metrics.e2el);
            e2el_user.add(metrics.e2el_user);
            queue.add(metrics.queue);
            conn.add(metrics.conn);
            merge.add(metrics.merge);
            run_.itl_basis = std::max(run_.itl_basis, metrics.basis);
            good += is_good(metrics, options_.goodput) ? 1 : 0;
        }
        run_.mixture = gap_mixture(gaps);
        run_.mean_merge = std::move(merge).summarize({}).mean;
        run_.latency_ms = {.ttft = std::move(ttft).summarize(options_),
                           .ttft_wave0 = std::move(wave0).summarize(options_),
                           .ttft_rest = std::move(rest).summarize(options_),
                           .ttft_user = std::move(ttft_user).summarize(options_),
                           .tpot = std::move(tpot).summarize(options_),
                           .itl = std::move(itl).summarize(options_),
                           .icl = Distribution(gaps).summarize(options_.percents),
                           .e2el = std::move(e2el).summarize(options_),
                           .e2el_user = std::move(e2el_user).summarize(options_),
                           .queue = std::move(queue).summarize(options_),
                           .conn = std::move(conn).summarize(options_)};
        if (!options_.goodput.empty() && run_.ok > 0 && run_.duration_s > 0) {
            run_.goodput_req_s = static_cast<double>(good) / run_.duration_s;
            run_.goodput_fraction = static_cast<double>(good) / static_cast<double>(records_.size());
        }
    }

    void add_throughput() {
        const double duration = run_.duration_s;
        const double in = static_cast<double>(run_.in_tokens) / duration;
        const double out = static_cast<double>(run_.out_tokens) / duration;
        run_.throughput = Throughput{.req_s = static_cast<double>(run_.ok) / duration,
                                     .in_tok_s = in,
                                     .out_tok_s = out,
                                     .total_tok_s = in + out};
        run_.peak_out_tok_s = peak_second();
    }

    // Tokens, never chunks: a chunk may hold several.
    std::optional<double> peak_second() const {
        std::vector<double> bins(static_cast<std::size_t>(run_.duration_s) + 1);
        for_each_chunk([&](std::int64_t t_ns, double tokens) {
            bins[static_cast<std::size_t>(seconds(t_ns - window_.begin_ns))] += tokens;
        });
        const double best = *std::max_element(bins.begin(), bins.end());
        return best > 0 && run_.duration_s >= 1 ? std::optional(best) : std::nullopt;
    }

    template <class Fn>
    void for_each_chunk(const Fn& fn) const {
        for (const RequestRecord* record : records_) {
            if (!record->ok()) {
                continue;
            }
            const std::vector<double> tokens = tokens_of_chunks(*record);
            for (std::size_t j = 0; j < tokens.size(); ++j) {
                fn(record->chunks[j].t_ns, tokens[j]);
            }
        }
    }

    void add_concurrency() {
        std::vector<Interval> sent;
        std::vector<Interval> slots;
        for (const RequestRecord* record : records_) {
            if (record->t_start != 0 && departure(*record) > record->t_start) {
                sent.push_back({record->t_start, departure(*record)});
                slots.push_back({record->t_sched, record->t_end});
            }
        }
        const std::vector<InflightStep> steps = inflight_steps(sent);
        for (const InflightStep& step : steps) {
            run_.peak_concurrency = std::max(run_.peak_concurrency, step.count);
        }
        run_.mean_concurrency = mean_inflight(steps, window_);
        // In a closed loop the steady part is where the slots are taken: between the end of one request and the first
        //    byte of
        // the next on the same slot lies no time of the load's, and a dip of microseconds must not end the window.
        const bool closed = !options_.open_loop && options_.max_concurrency > 0;
        const double full = closed ? static_cast<double>(options_.max_concurrency) : median_inflight(steps, window_);
        Interval steady = longest_at_least(closed ? inflight_steps(slots) : steps, 0.95 * full);
        steady.begin_ns = std::max(steady.begin_ns, window_.begin_ns);
        steady.end_ns = std::min(steady.end_ns, window_.end_ns);
        if (steady.end_ns > steady.begin_ns) {
            run_.steady = steady_of(steady);
        }
    }

    Steady steady_of(const Interval& window) const {
        const auto inside = [&](std::int64_t t) { return t >= window.begin_ns && t < window.end_ns; };
        double finished = 0;
        double in = 0;
        double out = 0;
        for (const RequestRecord* record : records_) {
            if (record->ok()) {
                finished += inside(record->t_last) ? 1 : 0;
                in += inside(record->t_first) ? record->input_tokens() : 0;
            }
        }
        for_each_chunk([&](std::int64_t t_ns, double tokens) { out += inside(t_ns) ? tokens : 0; });
        const double length = seconds(window.end_ns - window.begin_ns);
        return {.window_s = length,
                .fraction = length / run_.duration_s,
                .throughput = {.req_s = finished / length,
                               .in_tok_s = in / length,
                               .out_tok_s = out / length,
                               .total_tok_s = (in + out) / length}};
    }

    const MetricOptions& options_;
    std::vector<const RequestRecord*> records_;
    Interval window_;
    RunMetrics run_;
};

}  // namespace

RunMetrics run_metrics(std::span<const RequestRecord> records, const MetricOptions& options) {
    return Aggregator(records, options).aggregate();
}

}  // namespace megamoe::lab
