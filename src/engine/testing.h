// For tests: a model whose next token is a hash of the whole token history, read back from the caches. A token that the
// engine loses, repeats or puts at a wrong position, and a page that two requests share, change or break the answer.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine_plan.h"
#include "engine/forward_port.h"
#include "engine/request.h"
#include "model/sampler.h"

namespace megamoe::engine::testing {

inline constexpr std::int32_t kVocab = 40;
inline constexpr std::int32_t kEos = 1;

// A CSA layer of ratio 4 and an HCA layer of ratio 8; an entry holds its tokens themselves.
inline ModelGeometry fake_geometry() {
    ModelGeometry g;
    g.vocab_size = kVocab;
    g.num_layers = 2;
    g.ratios = {4, 8};
    g.head_dim = 8;
    g.index_dim = 2;
    g.window = 6;
    g.max_positions = 100'000;
    g.eos_id = kEos;
    return g;
}

using History = std::vector<std::int32_t>;

inline std::vector<float> fake_logits(const History& history) {
    std::uint64_t h = history.size();
    for (const std::int32_t token : history) {
        h = (h ^ static_cast<std::uint64_t>(token)) * 0x9E3779B97F4A7C15U;
        h ^= h >> 29;
    }
    std::vector<float> logits(kVocab);
    for (std::int32_t id = 0; id < kVocab; ++id) {
        logits[static_cast<std::size_t>(id)] = static_cast<float>(model::hash32(h, 0, id) % 1024) / 128;
    }
    if (h % 512 == 0) {  // now and then a broken row
        logits[3] = std::numeric_limits<float>::quiet_NaN();
    }
    return logits;
}

struct Answer {
    History tokens;
    FinishReason finish = FinishReason::kNone;
};

// What a request must get, however it is scheduled. It has to name its seed.
inline Answer expected_answer(const Request& request) {
    Answer answer;
    History history = request.prompt;
    model::TokenCounts counts;
    const SamplingParams& p = request.sampling;
    while (answer.finish == FinishReason::kNone) {
        model::Sampler sampler;
        const std::vector<float> logits = fake_logits(history);
        const auto sampled = sampler.sample({.logits = logits,
                                             .params = p,
                                             .output_counts = counts,
                                             .num_generated = static_cast<std::int32_t>(answer.tokens.size()),
                                             .position = std::ssize(history),
                                             .seed = p.seed.value_or(0),
                                             .eos_id = kEos});
        if (!sampled) {
            answer.finish = FinishReason::kError;
            break;
        }
        const std::int32_t token = sampled.value().token;
        history.push_back(token);
        answer.tokens.push_back(token);
        ++counts[token];
        const auto& stops = p.stop_token_ids;
        if ((token == kEos && !p.ignore_eos) || std::find(stops.begin(), stops.end(), token) != stops.end()) {
            answer.finish = FinishReason::kStop;
        } else if (std::ssize(answer.tokens) == p.max_tokens) {
            answer.finish = FinishReason::kLength;
        }
    }
    return answer;
}

// Called before each forward; an error it returns is that of the forward.
using ForwardHook = std::function<Result<Done>(RankId rank, const step::StepPlan& plan)>;

class FakeForward final : public ForwardPort {
  public:
    FakeForward(RankId rank, kv::Pools& pools, ForwardHook hook) : rank_(rank), pools_(pools), hook_(std::move(hook)) {}

    Result<Done> forward(std::span<const Segment> segments, const step::StepPlan& plan,
                         std::span<float> logits) override {
        if (hook_) {
            MM_TRY_DONE(hook_(rank_, plan));
        }
        const auto me = static_cast<std::size_t>(raw(rank_));
        std::int64_t rows = 0;
        std::size_t wanted = 0;
        for (const Segment& segment : segments) {
            if (segment.tokens.empty() || segment.start != segment.seq->length()) {
                return broken("a segment starts elsewhere than its cache ends");
            }
            if ((segment.seq->state_slot() == 0) != (plan.real[me] == 0)) {
                return broken("a real row on the dummy slot, or a dummy row on a real one");
            }
            rows += std::ssize(segment.tokens);
            write(segment);
            if (segment.want_logits) {
                MM_TRY(const History history,
                       read(*segment.seq, segment.start + static_cast<int>(segment.tokens.size())));
                const std::vector<float> row = fake_logits(history);
                if ((wanted + 1) * kVocab > logits.size()) {
                    return broken("more logit rows than planned");
                }
                std::copy(row.begin(), row.end(), logits.begin() + static_cast<std::ptrdiff_t>(wanted++ * kVocab));
            }
        }
        if (rows != plan.run[me] || wanted != static_cast<std::size_t>(plan.logit[me]) ||
            logits.size() != wanted * kVocab) {
            return broken(fmt::format("{} rows and {} logit rows differ from the plan", rows, wanted));
        }
        return Done{};
    }

  private:
    static constexpr auto kState = kv::StateKind::kAttention;

    static Error broken(std::string what) { return Error{Errc::kInternal, std::move(what), {}}; }

    void write(const Segment& segment) {
        std::int32_t t = segment.start;
        for (const std::int32_t token : segment.tokens) {
            for (std::int32_t layer = 0; layer < 2; ++layer) {
                std::memcpy(pools_.window_row(layer, *segment.seq, t), &token, sizeof token);
                *pools_.state_row(layer, kState, *segment.seq, t) = static_cast<float>(token);
                const std::int32_t ratio = layer == 0 ? 4 : 8;
                if ((t + 1) % ratio == 0) {
                    close_window(layer, ratio, *segment.seq, t / ratio);
                }
            }
            ++t;
        }
    }

    void close_window(std::int32_t layer, std::int32_t ratio, const kv::Sequence& seq, std::int32_t w) {
        std::array<std::int32_t, 8> entry{};
        for (std::int32_t i = 0; i < ratio; ++i) {
            entry[static_cast<std::size_t>(i)] =
                static_cast<std::int32_t>(*pools_.state_row(layer, kState, seq, w * ratio + i));
        }
        std::memcpy(pools_.entry_row(layer, seq, w), entry.data(), sizeof entry);
    }

    // The history by entries and open windows of one layer.
    History read_layer(std::int32_t layer, std::int32_t ratio, const kv::Sequence& seq, std::int32_t length) const {
        History history;
        for (std::int32_t t = 0; t < length; ++t) {
            std::array<std::int32_t, 8> entry{};
            if (t / ratio < length / ratio) {
                std::memcpy(entry.data(), pools_.entry_row(layer, seq, t / ratio), sizeof entry);
                history.push_back(entry[static_cast<std::size_t>(t % ratio)]);
            } else {
                history.push_back(static_cast<std::int32_t>(*pools_.state_row(layer, kState, seq, t)));
            }
        }
        return history;
    }

    Result<History> read(const kv::Sequence& seq, std::int32_t length) const {
        const History history = read_layer(0, 4, seq, length);
        if (history != read_layer(1, 8, seq, length)) {
            return broken("the layers' entries differ");
        }
        for (std::int32_t t = std::max(length - 6, 0); t < length; ++t) {
            for (std::int32_t layer = 0; layer < 2; ++layer) {
                std::int32_t token = -1;
                std::memcpy(&token, pools_.window_row(layer, seq, t), sizeof token);
                if (token != history[static_cast<std::size_t>(t)]) {
                    return broken(fmt::format("window and entries differ at position {} of {}", t, length));
                }
            }
        }
        return history;
    }

    RankId rank_;
    kv::Pools& pools_;
    ForwardHook hook_;
};

class FakeFactory final : public ForwardFactory {
  public:
    explicit FakeFactory(ForwardHook hook = {}) : hook_(std::move(hook)) {}

    const ModelGeometry& geometry() const override { return geometry_; }
    std::int32_t cache_value_bytes() const override { return 4; }
    std::vector<MemoryItem> memory(const ForwardLimits& limits) const override {
        return {{"activations", std::int64_t{1024} * limits.max_tokens_per_rank}};
    }
    Result<std::unique_ptr<ForwardPort>> create(const comm::RankContext& rank, kv::Pools& pools,
                                                const ForwardLimits&) const override {
        // The barrier stands for the exchanges of a MoE layer: a rank that misses a step hangs the others.
        const comm::RankContext context = rank;
        ForwardHook hook = [context, inner = hook_](RankId me, const step::StepPlan& plan) -> Result<Done> {
            MM_TRY_DONE(context.barrier("fake.moe"));
            return inner ? inner(me, plan) : Result<Done>(Done{});
        };
        return std::unique_ptr<ForwardPort>(std::make_unique<FakeForward>(rank.rank, pools, std::move(hook)));
    }

  private:
    ModelGeometry geometry_ = fake_geometry();
    ForwardHook hook_;
};

}  // namespace megamoe::engine::testing
