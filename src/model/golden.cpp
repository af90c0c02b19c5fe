#include "model/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "model/golden_tensors.h"
#include "model/solo.h"

namespace megamoe::model {
namespace {

using Ids = std::vector<std::int32_t>;
using Floats = std::vector<float>;

struct Report {
    const std::function<void(std::string_view)>& print;
    std::int32_t compared = 0;
    std::int32_t missed = 0;

    void floats(const std::string& name, std::span<const float> got, std::span<const float> want, float bar) {
        float error = got.size() == want.size() ? 0.0F : INFINITY;
        float top = 0;
        for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
            const float d = std::abs(got[i] - want[i]);
            error = d <= error ? error : d;  // a NaN takes over and fails every bar
            top = std::max(top, std::abs(want[i]));
        }
        const bool decides = bar > 0;
        const bool miss = decides && !(error <= bar);
        compared += decides;
        missed += miss;
        print(fmt::format("{:34} max error {:9.2e}   max reference {:8.3f}{}", name, error, top,
                          miss ? fmt::format("   FAIL, bar {:.0e}", bar) : ""));
    }

    void ids(const std::string& name, std::span<const std::int32_t> got, std::span<const std::int32_t> want) {
        std::int64_t wrong = std::abs(static_cast<std::int64_t>(got.size()) - static_cast<std::int64_t>(want.size()));
        for (std::size_t i = 0; i < std::min(got.size(), want.size()); ++i) {
            wrong += got[i] != want[i];
        }
        ++compared;
        missed += wrong > 0;
        print(fmt::format("{:34} {} of {} differ{}", name, wrong, want.size(), wrong > 0 ? "   FAIL" : ""));
    }
};

class Checker {
  public:
    Checker(std::shared_ptr<const LoadedModel> model, const weights::Checkpoint& gold, cpu::Isa isa,
            std::int32_t threads, const GoldenBars& bars, Report& report)
        : model_(std::move(model)), gold_(gold), isa_(isa), threads_(threads), bars_(bars), report_(report) {}

    Result<Done> run();

  private:
    Result<std::unique_ptr<Solo>> solo(Profile profile, std::optional<float> limit = {}) const;
    Result<Floats> logits_of(Solo& solo, std::span<const std::int32_t> tokens, Tap* tap = nullptr) const;
    Result<Ids> continue_greedily(Solo& solo, std::span<const std::int32_t> prompt, std::size_t count) const;
    Result<Done> check_sequence(Solo& hf, const std::string& name, const Ids& tokens);
    Result<Done> check_layers(const std::string& name, const DumpTap& tap);
    Result<Done> check_limits(const std::string& name, const Ids& tokens);
    Result<Done> check_greedy(Solo& hf, const std::string& name, const Ids& tokens);
    Result<Done> check_text(Solo& hf, Solo& ds, const std::string& name, const Ids& tokens);
    void report_domains();
    bool has(const std::string& name) const { return gold_.find(name) != nullptr; }
    // Names of the form `prefix` + rest, as pairs of full name and rest.
    std::vector<std::pair<std::string, std::string>> with_prefix(const std::string& prefix) const;

    struct Losses {
        std::vector<double> reference, hf, ds;
    };
    std::shared_ptr<const LoadedModel> model_;
    const weights::Checkpoint& gold_;
    cpu::Isa isa_;
    std::int32_t threads_;
    const GoldenBars& bars_;
    Report& report_;
    std::map<std::string, Losses> domains_;
};

double mean(const std::vector<double>& x) {
    double sum = 0;
    for (const double v : x) {
        sum += v;
    }
    return sum / static_cast<double>(x.size());
}

std::int32_t arg_max(std::span<const float> row) {
    return static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

// Loss of token i+1 at row i.
Floats token_losses(std::span<const float> logits, std::size_t vocab, std::span<const std::int32_t> tokens) {
    Floats out;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        const auto row = logits.subspan(i * vocab, vocab);
        const double top = *std::max_element(row.begin(), row.end());
        double sum = 0;
        for (const float z : row) {
            sum += std::exp(static_cast<double>(z) - top);
        }
        out.push_back(static_cast<float>(std::log(sum) + top - row[static_cast<std::size_t>(tokens[i + 1])]));
    }
    return out;
}

// The 8 best ids of each row, best first, the lower id first on a tie.
Ids best8(std::span<const float> logits, std::size_t vocab, std::size_t rows) {
    Ids out;
    Ids order(vocab);
    for (std::size_t r = 0; r < rows; ++r) {
        const auto row = logits.subspan(r * vocab, vocab);
        for (std::size_t i = 0; i < vocab; ++i) {
            order[i] = static_cast<std::int32_t>(i);
        }
        std::partial_sort(order.begin(), order.begin() + 8, order.end(), [&](std::int32_t a, std::int32_t b) {
            const float x = row[static_cast<std::size_t>(a)];
            const float y = row[static_cast<std::size_t>(b)];
            return x > y || (x == y && a < b);
        });
        out.insert(out.end(), order.begin(), order.begin() + 8);
    }
    return out;
}

std::vector<std::pair<std::string, std::string>> Checker::with_prefix(const std::string& prefix) const {
    std::vector<std::pair<std::string, std::string>> out;
    for (auto it = gold_.tensors().lower_bound(prefix); it != gold_.tensors().end() && it->first.starts_with(prefix);
         ++it) {
        out.emplace_back(it->first, it->first.substr(prefix.size()));
    }
    return out;
}

Result<std::unique_ptr<Solo>> Checker::solo(Profile profile, std::optional<float> limit) const {
    return Solo::create(model_, {.profile = profile, .isa = isa_, .threads = threads_, .swiglu_limit = limit});
}

Result<Floats> Checker::logits_of(Solo& solo, std::span<const std::int32_t> tokens, Tap* tap) const {
    MM_TRY(auto sequence, solo.open());
    Floats all;
    for (std::size_t at = 0; at < tokens.size();) {
        const auto count = std::min(tokens.size() - at, static_cast<std::size_t>(solo.max_rows()));
        MM_TRY(const auto part,
               solo.extend(sequence, tokens.subspan(at, count), static_cast<std::int32_t>(count), tap));
        all.insert(all.end(), part.begin(), part.end());
        at += count;
    }
    return all;
}

Result<Ids> Checker::continue_greedily(Solo& solo, std::span<const std::int32_t> prompt, std::size_t count) const {
    MM_TRY(auto sequence, solo.open());
    MM_TRY(auto logits, solo.extend(sequence, prompt, 1));
    Ids out;
    while (out.size() < count) {
        out.push_back(arg_max(logits));
        if (out.size() < count) {
            MM_TRY(logits, solo.extend(sequence, {&out.back(), 1}, 1));
        }
    }
    return out;
}

Result<Done> Checker::check_layers(const std::string& name, const DumpTap& tap) {
    for (const auto& [key, got] : tap.dumps()) {
        if (key.ends_with(".gate.1") || !has(name + "." + key)) {
            continue;
        }
        MM_TRY(const auto want, read_floats(gold_, name + "." + key));
        report_.floats(name + "." + key, got, want, 0);
    }
    // The order of a token's experts is free: compare them, and their weights, by ascending id.
    const auto k = static_cast<std::size_t>(model_->geometry().top_k);
    for (const auto& [layer, got_ids] : tap.expert_ids()) {
        const std::string key = fmt::format("{}.layer{}.gate", name, layer);
        if (!has(key + ".2")) {
            continue;
        }
        MM_TRY(auto want_ids, read_ids(gold_, key + ".2"));
        MM_TRY(auto want_weights, read_floats(gold_, key + ".1"));
        Ids ids = got_ids;
        Floats weights = tap.dumps().at(fmt::format("layer{}.gate.1", layer));
        const auto sort_rows = [k](Ids& row_ids, Floats& row_weights) {
            for (std::size_t r = 0; r < row_ids.size(); r += k) {
                std::vector<std::pair<std::int32_t, float>> pairs;
                for (std::size_t j = 0; j < k; ++j) {
                    pairs.emplace_back(row_ids[r + j], row_weights[r + j]);
                }
                std::sort(pairs.begin(), pairs.end());
                for (std::size_t j = 0; j < k; ++j) {
                    std::tie(row_ids[r + j], row_weights[r + j]) = pairs[j];
                }
            }
        };
        sort_rows(ids, weights);
        sort_rows(want_ids, want_weights);
        report_.ids(key + ".2 (sets)", ids, want_ids);
        report_.floats(key + ".1", weights, want_weights, 0);
    }
    return Done{};
}

Result<Done> Checker::check_limits(const std::string& name, const Ids& tokens) {
    for (const auto& [full, limit] : with_prefix(name + ".logits_swiglu_limit_")) {
        MM_TRY(const auto clamped, solo(Profile::kHf, std::stof(limit)));
        MM_TRY(const auto got, logits_of(*clamped, tokens));
        MM_TRY(const auto want, read_floats(gold_, full));
        report_.floats(full, got, want, bars_.logit_error);
    }
    return Done{};
}

Result<Done> Checker::check_greedy(Solo& hf, const std::string& name, const Ids& tokens) {
    for (const auto& [full, length] : with_prefix(name + ".greedy_from_")) {
        MM_TRY(const auto want, read_ids(gold_, full));
        const auto prompt = std::span(tokens).first(static_cast<std::size_t>(std::stol(length)));
        MM_TRY(const auto got, continue_greedily(hf, prompt, want.size()));
        report_.ids(full, got, want);
    }
    return Done{};
}

Result<Done> Checker::check_sequence(Solo& hf, const std::string& name, const Ids& tokens) {
    DumpTap tap(model_->geometry(), static_cast<std::int32_t>(tokens.size()));
    const bool dumped =
        !with_prefix(name + ".layer").empty() && tokens.size() <= static_cast<std::size_t>(hf.max_rows());
    MM_TRY(const auto got, logits_of(hf, tokens, dumped ? &tap : nullptr));
    MM_TRY(const auto want, read_floats(gold_, name + ".logits"));
    report_.floats(name + ".logits", got, want, bars_.logit_error);
    MM_TRY_DONE(check_layers(name, tap));
    MM_TRY_DONE(check_limits(name, tokens));
    return check_greedy(hf, name, tokens);
}

Result<Done> Checker::check_text(Solo& hf, Solo& ds, const std::string& name, const Ids& tokens) {
    const auto vocab = static_cast<std::size_t>(model_->geometry().vocab_size);
    const auto inputs = std::span(tokens).first(tokens.size() - 1);
    MM_TRY(const auto want, read_floats(gold_, name + ".nll"));
    MM_TRY(const auto logits, logits_of(hf, inputs));
    const Floats got = token_losses(logits, vocab, tokens);
    report_.floats(name + ".nll", got, want, bars_.nll_error);
    MM_TRY(const auto ds_logits, logits_of(ds, inputs));
    const Floats ds_got = token_losses(ds_logits, vocab, tokens);
    Losses& losses = domains_[name.substr(0, name.find('.'))];
    losses.reference.insert(losses.reference.end(), want.begin(), want.end());
    losses.hf.insert(losses.hf.end(), got.begin(), got.end());
    losses.ds.insert(losses.ds.end(), ds_got.begin(), ds_got.end());
    if (has(name + ".top8_id")) {
        MM_TRY(const auto want_ids, read_ids(gold_, name + ".top8_id"));
        MM_TRY(const auto want_top, read_floats(gold_, name + ".top8_logit"));
        report_.ids(name + ".top8_id", best8(logits, vocab, inputs.size()), want_ids);
        Floats got_top;
        for (std::size_t i = 0; i < want_ids.size(); ++i) {
            got_top.push_back(logits[i / 8 * vocab + static_cast<std::size_t>(want_ids[i])]);
        }
        report_.floats(name + ".top8_logit", got_top, want_top, bars_.logit_error);
    }
    if (has(name + ".last_logits")) {
        MM_TRY(const auto want_last, read_floats(gold_, name + ".last_logits"));
        report_.floats(name + ".last_logits", std::span(logits).last(vocab), want_last, bars_.logit_error);
    }
    return check_greedy(hf, name, tokens);
}

void Checker::report_domains() {
    if (domains_.empty()) {
        return;
    }
    report_.print("");
    report_.print(fmt::format("{:12} {:>10} {:>10} {:>10} {:>10}", "mean loss", "reference", "hf", "ds", "ds - ref"));
    Losses all;
    for (const auto& [domain, losses] : domains_) {
        const double reference = mean(losses.reference);
        const double change = mean(losses.ds) - reference;
        const bool miss = !(std::abs(change) <= bars_.ds_loss_difference);
        ++report_.compared;
        report_.missed += miss;
        report_.print(fmt::format("{:12} {:10.4f} {:10.4f} {:10.4f} {:+10.4f}{}", domain, reference, mean(losses.hf),
                                  mean(losses.ds), change,
                                  miss ? fmt::format("   FAIL, bar {}", bars_.ds_loss_difference) : ""));
        all.reference.insert(all.reference.end(), losses.reference.begin(), losses.reference.end());
        all.hf.insert(all.hf.end(), losses.hf.begin(), losses.hf.end());
        all.ds.insert(all.ds.end(), losses.ds.begin(), losses.ds.end());
    }
    report_.print(fmt::format("{:12} {:10.4f} {:10.4f} {:10.4f} {:+10.4f}", "all", mean(all.reference), mean(all.hf),
                              mean(all.ds), mean(all.ds) - mean(all.reference)));
}

Result<Done> Checker::run() {
    MM_TRY(const auto hf, solo(Profile::kHf));
    MM_TRY(const auto ds, solo(Profile::kDs));
    constexpr std::string_view kTokens = ".tokens";
    for (const auto& [key, tensor] : gold_.tensors()) {
        if (!key.ends_with(kTokens)) {
            continue;
        }
        const std::string name = key.substr(0, key.size() - kTokens.size());
        MM_TRY(const auto tokens, read_ids(gold_, key));
        const std::int32_t vocab = model_->geometry().vocab_size;
        for (const std::int32_t id : tokens) {
            if (id < 0 || id >= vocab) {
                return invalid(fmt::format("reference {} holds token {}, the vocabulary has {}", key, id, vocab));
            }
        }
        if (has(name + ".logits")) {
            MM_TRY_DONE(check_sequence(*hf, name, tokens));
        }
        if (has(name + ".nll")) {
            MM_TRY_DONE(check_text(*hf, *ds, name, tokens));
        }
    }
    report_domains();
    return Done{};
}

}  // namespace

Result<std::int32_t> check_golden(std::shared_ptr<const LoadedModel> model, cpu::Isa isa, std::int32_t threads,
                                  const GoldenBars& bars, const std::function<void(std::string_view)>& print) {
    const std::string path = model->directory() + "/golden.safetensors";
    MM_TRY(const auto gold, weights::Checkpoint::open_file(path));
    Report report{print};
    MM_TRY_DONE(Checker(model, *gold, isa, threads, bars, report).run());
    if (report.compared == 0) {
        return invalid(path + " holds no reference that this check knows",
                       "it needs NAME.tokens with NAME.logits or NAME.nll");
    }
    print(fmt::format("\n{} comparisons with a bar, {} missed", report.compared, report.missed));
    return report.missed;
}

}  // namespace megamoe::model
