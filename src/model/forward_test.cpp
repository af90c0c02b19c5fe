// A row's bits depend on its own earlier tokens alone: however they were split, whatever ran beside them.
#include "model/forward.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "model/solo.h"
#include "model/testing.h"

namespace megamoe::model {
namespace {

using testing::random_tokens;
using Floats = std::vector<float>;
using Ids = std::vector<std::int32_t>;

constexpr std::size_t kLength = 150;  // several windows of 16, closed HCA windows, more entries than index_topk

std::unique_ptr<Solo> solo(SoloOptions options) {
    options.max_rows = 256;
    options.max_length = 256;
    options.page_size = 32;
    auto made = Solo::create(testing::tiny(), options);
    MM_CHECK(static_cast<bool>(made), made ? "" : to_string(made.error()));
    return std::move(made).take();
}

// Logits of every token, fed in chunks of the given sizes (the last size repeats).
Floats feed(Solo& solo, std::span<const std::int32_t> tokens, const std::vector<std::size_t>& sizes) {
    auto sequence = solo.open();
    MM_CHECK(static_cast<bool>(sequence), "no sequence");
    Floats all;
    std::size_t at = 0;
    for (std::size_t i = 0; at < tokens.size(); ++i) {
        const std::size_t count = std::min(sizes[std::min(i, sizes.size() - 1)], tokens.size() - at);
        auto logits = solo.extend(sequence.value(), tokens.subspan(at, count), static_cast<std::int32_t>(count));
        MM_CHECK(static_cast<bool>(logits), logits ? "" : to_string(logits.error()));
        all.insert(all.end(), logits.value().begin(), logits.value().end());
        at += count;
    }
    return all;
}

bool same_bits(const Floats& a, const Floats& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class ForwardByProfile : public ::testing::TestWithParam<Profile> {};

TEST_P(ForwardByProfile, ChunksOfAnyFixedSizeGiveTheBitsOfOnePrefill) {
    const auto engine = solo({.profile = GetParam()});
    const Ids tokens = random_tokens(engine->geometry(), kLength, 1);
    const Floats whole = feed(*engine, tokens, {kLength});

    for (const std::size_t size : {1, 3, 5, 17, 100}) {
        EXPECT_TRUE(same_bits(feed(*engine, tokens, {size}), whole)) << "chunks of " << size;
    }
}

TEST_P(ForwardByProfile, RandomChunksGiveTheBitsOfOnePrefill) {
    const auto engine = solo({.profile = GetParam()});
    EXPECT_TRUE(rc::check("any split", [&] {
        const auto length = *rc::gen::inRange<std::size_t>(1, kLength);
        const Ids tokens = random_tokens(engine->geometry(), length, *rc::gen::arbitrary<std::uint32_t>());
        const auto sizes =
            *rc::gen::nonEmpty(rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 40)));

        RC_ASSERT(same_bits(feed(*engine, tokens, sizes), feed(*engine, tokens, {length})));
    }));
}

TEST_P(ForwardByProfile, NeighboursInTheBatchDoNotMoveABit) {
    const auto engine = solo({.profile = GetParam()});
    EXPECT_TRUE(rc::check("three sequences together = each alone", [&] {
        std::vector<Ids> texts;
        std::vector<Floats> alone;
        for (int i = 0; i < 3; ++i) {
            texts.push_back(random_tokens(engine->geometry(), *rc::gen::inRange<std::size_t>(1, 60),
                                          *rc::gen::arbitrary<std::uint32_t>()));
            alone.push_back(feed(*engine, texts.back(), {texts.back().size()}));
        }
        std::vector<kv::Sequence> sequences;
        std::vector<Solo::Feed> feeds;
        for (int i = 0; i < 3; ++i) {
            sequences.push_back(engine->open().take());
        }
        for (std::size_t i = 0; i < 3; ++i) {
            feeds.push_back({&sequences[i], texts[i], static_cast<std::int32_t>(texts[i].size())});
        }

        const Floats together = engine->extend(feeds).take();

        Floats want;
        for (const Floats& one : alone) {
            want.insert(want.end(), one.begin(), one.end());
        }
        RC_ASSERT(same_bits(together, want));
    }));
}

TEST_P(ForwardByProfile, BackendsAndThreadCountsGiveTheSameBits) {
    const auto reference = solo({.profile = GetParam(), .backend = MoeBackend::kReference});
    const Ids tokens = random_tokens(reference->geometry(), kLength, 5);
    const Floats want = feed(*reference, tokens, {kLength});

    for (const std::int32_t threads : {1, 2, 5}) {
        const auto standard = solo({.profile = GetParam(), .backend = MoeBackend::kStandard, .threads = threads});
        EXPECT_TRUE(same_bits(feed(*standard, tokens, {64, 1, 30}), want)) << threads << " threads";
    }
}

TEST_P(ForwardByProfile, AReusedStateSlotAndReusedPagesGiveTheBitsOfFreshOnes) {
    const auto engine = solo({.profile = GetParam(), .max_sequences = 1});
    const Ids first = random_tokens(engine->geometry(), kLength, 6);
    const Ids second = random_tokens(engine->geometry(), kLength, 7);
    const Floats fresh = feed(*engine, second, {7});

    feed(*engine, first, {50});

    EXPECT_TRUE(same_bits(feed(*engine, second, {7}), fresh));
}

INSTANTIATE_TEST_SUITE_P(Profiles, ForwardByProfile, ::testing::Values(Profile::kHf, Profile::kDs),
                         [](const auto& profile) { return profile.param == Profile::kHf ? "hf" : "ds"; });

TEST(Forward, ProfileHfAgreesAcrossInstructionSets) {
    const Ids tokens = random_tokens(testing::tiny()->geometry(), kLength, 8);
    const auto reference = solo({.profile = Profile::kHf, .isa = cpu::Isa::kScalar});
    const Floats want = feed(*reference, tokens, {kLength});

    for (const auto isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512, cpu::Isa::kAvx512Bf16}) {
        if (isa > cpu::detect_isa()) {
            continue;
        }
        const auto engine = solo({.profile = Profile::kHf, .isa = isa});
        const Floats got = feed(*engine, tokens, {kLength});
        float worst = 0;
        for (std::size_t i = 0; i < got.size(); ++i) {
            worst = std::max(worst, std::abs(got[i] - want[i]));
        }
        EXPECT_LT(worst, 1e-4F) << cpu::name(isa);  // model spec 7.4: above that it is a bug, not summation order
    }
}

}  // namespace
}  // namespace megamoe::model
