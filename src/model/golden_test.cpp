// Against outputs of programs that share no line with this one: transformers (hf) and a NumPy forward (ds).
#include "model/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "model/golden_tensors.h"
#include "model/solo.h"
#include "model/testing.h"

namespace megamoe::model {
namespace {

std::vector<float> run_all(Solo& solo, std::span<const std::int32_t> tokens, Tap* tap = nullptr) {
    auto sequence = solo.open();
    auto logits = solo.extend(sequence.value(), tokens, static_cast<std::int32_t>(tokens.size()), tap);
    MM_CHECK(static_cast<bool>(logits), logits ? "" : to_string(logits.error()));
    return std::move(logits).take();
}

// Relative L2 distance.
double distance(std::span<const float> got, std::span<const float> want) {
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        error += std::pow(static_cast<double>(got[i]) - want[i], 2);
        size += std::pow(static_cast<double>(want[i]), 2);
    }
    return std::sqrt(error / size);
}

TEST(Golden, TinyModelMatchesTransformersOnEveryInstructionSet) {
    for (const auto isa : {cpu::Isa::kScalar, cpu::Isa::kAvx2, cpu::Isa::kAvx512, cpu::Isa::kAvx512Bf16}) {
        if (isa > cpu::detect_isa()) {
            continue;
        }
        std::string lines;
        auto missed = check_golden(testing::tiny(), isa, 1, {},
                                   [&](std::string_view line) { lines += std::string(line) + "\n"; });

        ASSERT_TRUE(missed) << to_string(missed.error());
        EXPECT_EQ(missed.value(), 0) << cpu::name(isa) << "\n" << lines;
    }
}

// Rounding points amplify the order of float32 sums: a sum near a rounding boundary flips one bfloat16 step (2^-8), and
// later layers route on it, so single values may move by whole units while the distribution does not. The oracle runs
// with double sums here. The bar of each tensor is how far the oracle's own float32 run is from that; the very first
// one, before anything is amplified, must agree to 1e-4.
TEST(Golden, TinyModelInProfileDsStaysCloseToTheIndependentForward) {
    const auto model = testing::tiny();
    auto gold = weights::Checkpoint::open_file("tests/golden/tiny-b/golden.safetensors").take();
    auto ds = weights::Checkpoint::open_file("tests/golden/ds/tiny-b.safetensors").take();
    const auto tokens = read_ids(*gold, "b.tokens").take();
    auto solo = Solo::create(model, {.profile = Profile::kDs}).take();
    DumpTap tap(model->geometry(), static_cast<std::int32_t>(tokens.size()));

    run_all(*solo, tokens, &tap);

    for (const auto& [key, got] : tap.dumps()) {
        if (ds->find("b." + key) == nullptr) {
            continue;
        }
        const auto want = read_floats(*ds, "b." + key).take();
        const double d = distance(got, want);
        const float bar = read_floats(*ds, "b." + key + ".f32").take().front();
        EXPECT_LT(d, key == "layer0.attn" ? 1e-4F : bar) << key;
    }
}

TEST(Golden, MiniModelInProfileDsHasTheLossesOfTheIndependentForward) {
    const auto model = testing::mini();
    auto gold = weights::Checkpoint::open_file("models/mini/golden.safetensors").take();
    auto ds = weights::Checkpoint::open_file("tests/golden/ds/mini.safetensors").take();
    auto solo = Solo::create(model, {.profile = Profile::kDs, .threads = 2}).take();
    const auto vocab = static_cast<std::size_t>(model->geometry().vocab_size);
    double sum_got = 0;
    double sum_want = 0;
    std::size_t count = 0;
    for (const auto& [key, tensor] : gold->tensors()) {
        if (!key.ends_with(".0.nll")) {  // one text a domain keeps the test short; `model golden` runs them all
            continue;
        }
        const auto tokens = read_ids(*gold, key.substr(0, key.size() - 4) + ".tokens").take();
        const auto want = read_floats(*ds, key).take();
        const auto logits = run_all(*solo, std::span(tokens).first(tokens.size() - 1));
        for (std::size_t i = 0; i < want.size(); ++i) {
            const auto row = std::span(logits).subspan(i * vocab, vocab);
            double total = 0;
            for (const float z : row) {
                total += std::exp(static_cast<double>(z));
            }
            sum_got += std::log(total) - row[static_cast<std::size_t>(tokens[i + 1])];
            sum_want += want[i];
            ++count;
        }
    }
    // 3584 tokens whose single losses move by 0.057 on average when roundings flip: a standard error of about 0.0015.
    EXPECT_NEAR(sum_got / static_cast<double>(count), sum_want / static_cast<double>(count), 0.006);
}

}  // namespace
}  // namespace megamoe::model
