// mm_model_speed DIR: a whole forward on one core beside what the machine could do. Prefill against oneDNN's bfloat16
// products of the same sizes, decode against the memory bandwidth, both roofs measured in this run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "bench/roofs/roofs.h"
#include "model/solo.h"

namespace megamoe::bench {
namespace {

using Ids = std::vector<std::int32_t>;
using Shape = std::tuple<std::int32_t, std::int32_t, std::int32_t>;  // m, n, k

Ids random_tokens(const ModelGeometry& g, std::int32_t count, std::uint64_t seed) {
    Ids out;
    for (std::int32_t i = 0; i < count; ++i) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        out.push_back(static_cast<std::int32_t>((seed >> 33) % static_cast<std::uint64_t>(g.vocab_size)));
    }
    return out;
}

// The products of one prefill of `rows` tokens with one row of logits; experts get even shares.
std::map<Shape, std::int64_t> products(const model::LoadedModel& m, std::int32_t rows) {
    std::map<Shape, std::int64_t> out;
    const ModelGeometry& g = m.geometry();
    const auto add = [&](const cpu::PackedMatrix& w, std::int32_t count_rows, std::int64_t times = 1) {
        if (w.rows() > 0) {
            out[{count_rows, w.rows(), w.cols()}] += times;
        }
    };
    const std::int32_t share = std::max(1, rows * g.top_k / g.num_experts);
    for (const model::Layer& l : m.layers()) {
        for (const auto* w :
             {&l.attn_hc.fn, &l.ffn_hc.fn, &l.wq_a, &l.wq_b, &l.wkv, &l.wo_b, &l.gate, &l.compressor.wkv,
              &l.compressor.wgate, &l.indexer.wq_b, &l.indexer.weights_proj, &l.indexer.compressor.wkv,
              &l.indexer.compressor.wgate, &l.experts.shared.w1, &l.experts.shared.w2, &l.experts.shared.w3}) {
            add(*w, rows);
        }
        add(l.wo_a.front(), rows, g.o_groups);
        for (const auto* w : {&l.experts.routed[0].w1, &l.experts.routed[0].w3, &l.experts.routed[0].w2}) {
            add(*w, share, std::min(g.num_experts, rows * g.top_k));
        }
    }
    add(m.head(), 1);
    return out;
}

// Seconds of the fastest run within about two seconds: a shared machine interrupts most of them.
template <class Run>
double best_seconds(Run run) {
    double best = 1e30;
    const std::int64_t end = now_ns() + 2'000'000'000;
    do {
        const std::int64_t start = now_ns();
        run();
        best = std::min(best, static_cast<double>(now_ns() - start) * 1e-9);
    } while (now_ns() < end);
    return best;
}

void fatal(const Error& error) {
    std::fprintf(stderr, "mm_model_speed: %s\n", to_string(error).c_str());
    std::exit(1);
}

constexpr std::int32_t kChunk =
    256;  // a longer prompt comes in chunks: the streams of so many tokens stay in the cache

void prefill_row(const std::shared_ptr<const model::LoadedModel>& m, std::int32_t length) {
    const std::int32_t rows = std::min(length, kChunk);
    auto solo = model::Solo::create(m, {.backend = MoeBackend::kMegaMoe2, .max_rows = rows, .max_length = length});
    if (!solo) {
        fatal(solo.error());
    }
    const Ids tokens = random_tokens(m->geometry(), length, 1);
    const double seconds = best_seconds([&] {
        auto sequence = solo.value()->open();
        for (std::int32_t at = 0; at < length; at += rows) {
            const auto chunk = std::span(tokens).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(rows));
            if (auto logits = solo.value()->extend(sequence.value(), chunk, at + rows == length ? 1 : 0); !logits) {
                fatal(logits.error());
            }
        }
    });
    double operations = 0;
    double roof_seconds = 0;
    for (const auto& [shape, times] : products(*m, rows)) {
        const auto [sm, sn, sk] = shape;
        const double work = 2.0 * sm * sn * sk * static_cast<double>(times) * (length / rows);
        operations += work;
        roof_seconds += work / bf16_matmul_rate(sm, sn, sk).value_or(1e30);
    }
    std::printf(
        "prefill %5d tokens in chunks of %3d  %9.2f ms  %7.1f GFLOP/s in products  oneDNN on the same products %9.2f "
        "ms  %5.1f %%\n",
        length, rows, seconds * 1e3, operations / seconds * 1e-9, roof_seconds * 1e3, 100 * roof_seconds / seconds);
}

void decode_row(const std::shared_ptr<const model::LoadedModel>& m, std::int32_t context) {
    auto solo =
        model::Solo::create(m, {.backend = MoeBackend::kMegaMoe2, .max_rows = 512, .max_length = context + 256});
    if (!solo) {
        fatal(solo.error());
    }
    auto sequence = solo.value()->open();
    const Ids tokens = random_tokens(m->geometry(), context, 2);
    const auto feed = [&](kv::Sequence& to, std::int32_t at, std::int32_t count) {
        const auto part = std::span(tokens).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
        if (auto logits = solo.value()->extend(to, part, 1); !logits) {
            fatal(logits.error());
        }
    };
    for (std::int32_t at = 0; at < context; at += std::min(512, context - at)) {
        feed(sequence.value(), at, std::min(512, context - at));
    }
    // Every token visits other experts: the figure is a mean over many, not the best one.
    constexpr std::int32_t kTokens = 20;
    std::int32_t fed = 0;
    const double seconds = best_seconds([&] {
                               if (fed + kTokens > 200) {  // back to the asked context
                                   sequence = Result<kv::Sequence>(Error{});
                                   sequence = solo.value()->open();
                                   for (std::int32_t at = 0; at < context; at += std::min(512, context - at)) {
                                       feed(sequence.value(), at, std::min(512, context - at));
                                   }
                                   fed = 0;
                               }
                               for (std::int32_t i = 0; i < kTokens; ++i, ++fed) {
                                   feed(sequence.value(), fed % context, 1);
                               }
                           }) /
                           kTokens;
    const double read = stream_read_rate();
    const auto bytes = static_cast<double>(m->bytes_per_decoded_token());
    std::printf(
        "decode at context %5d  %7.3f ms a token  %6.1f MB of weights  %6.1f GB/s  one core reads %6.1f GB/s  %5.1f "
        "%%\n",
        context, seconds * 1e3, bytes * 1e-6, bytes / seconds * 1e-9, read * 1e-9, 100 * bytes / seconds / read);
}

}  // namespace
}  // namespace megamoe::bench

int main(int argc, char** argv) {
    using namespace megamoe;
    if (argc != 2) {
        std::fprintf(stderr,
                     "usage: mm_model_speed MODEL_DIR (make one: megamoe model synth --preset small --out DIR)\n");
        return 2;
    }
    Workers workers(1);
    auto loaded = model::LoadedModel::load(argv[1], workers);
    if (!loaded) {
        bench::fatal(loaded.error());
    }
    std::printf("model %s  isa %s  profile ds  moe megamoe 2  one thread\n", argv[1],
                cpu::name(cpu::detect_isa()).data());
    for (const std::int32_t rows : {64, 256, 1024}) {
        bench::prefill_row(loaded.value(), rows);
    }
    for (const std::int32_t context : {64, 1024}) {
        bench::decode_row(loaded.value(), context);
    }
    return 0;
}
