// Expert-parallel ranks give the bits of one rank, whatever their number, their load and who is idle.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <vector>

#include "comm/rank_threads.h"
#include "model/forward.h"
#include "model/solo.h"
#include "model/testing.h"
#include "weights/synth.h"

namespace megamoe::model {
namespace {

using testing::random_tokens;
using Floats = std::vector<float>;
using Ids = std::vector<std::int32_t>;

constexpr std::int32_t kMaxRows = 64;
constexpr std::int32_t kPage = 32;

// The tiny sizes with 12 experts, which 3 ranks divide.
std::shared_ptr<const LoadedModel> twelve_experts() {
    static const auto model = [] {
        const auto dir = std::filesystem::temp_directory_path() / ("megamoe-twelve-" + std::to_string(::getpid()));
        weights::SynthOptions options{.geometry = weights::find_synth_preset("tiny").take(), .seed = 3};
        options.geometry.num_experts = 12;
        const auto written = weights::write_synthetic_checkpoint(options, dir.string());
        MM_CHECK(static_cast<bool>(written), written ? "" : to_string(written.error()));
        auto loaded = testing::load(dir.string());
        std::filesystem::remove_all(dir);  // its mappings stay
        return loaded;
    }();
    return model;
}

struct Case {
    Profile profile;
    MoeBackend backend;
    std::int32_t ranks;

    std::shared_ptr<const LoadedModel> model() const { return ranks == 3 ? twelve_experts() : testing::tiny(); }
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
    return std::string(info.param.profile == Profile::kHf ? "hf" : "ds") +
           std::array{"_reference_", "_standard_", "_mega1_", "_mega2_"}[static_cast<std::size_t>(info.param.backend)] +
           std::to_string(info.param.ranks);
}

// What each rank processes, step by step; 0 rows: idle, it brings one dummy row.
using Schedule = std::vector<std::vector<std::int32_t>>;  // [step][rank]

step::StepPlan plan_of(const std::vector<std::int32_t>& rows) {
    step::StepPlan plan;
    plan.phase = step::Phase::kExtend;
    plan.num_ranks = static_cast<std::int32_t>(rows.size());
    plan.bucket = kMaxRows;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        plan.who_runs[r] = rows[r] > 0;
        plan.real[r] = plan.logit[r] = rows[r];
        plan.run[r] = std::max(rows[r], 1);
    }
    return plan;
}

// The logits of all real rows of one rank's sequence.
Result<Done> run_rank(const comm::RankContext& context, const Case& c, const Schedule& schedule, const Ids& text,
                      Floats& out) {
    const auto model = c.model();
    const ModelGeometry& g = model->geometry();
    Workers workers(1);
    MM_TRY(const auto layout, kv::make_layout(g, kPage, c.profile == Profile::kDs ? 2 : 4));
    MM_TRY(const auto pools, kv::Pools::create(layout, {.token_pages = 16, .window_pages = 16, .state_slots = 2}));
    const auto isa = cpu::detect_isa();
    MM_TRY(const auto moe,
           moe::make_operator(c.backend, operator_config(*model, c.profile, isa, kMaxRows), context, workers));
    Forward forward(model, c.profile, isa, *pools, *moe, workers);
    auto sequence = kv::Sequence::open(*pools).value();
    const auto dummy = kv::Sequence::dummy(*pools);
    const std::int32_t zero = 0;
    const auto me = static_cast<std::size_t>(raw(context.rank));
    for (const auto& rows : schedule) {
        const std::int32_t count = rows[me];
        const std::int32_t at = sequence.length();
        Segment segment{&dummy, {&zero, 1}, 0, 0};
        if (count > 0) {
            MM_CHECK(sequence.reserve(at + count), "pages");
            segment = {&sequence,
                       std::span(text).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count)), at,
                       count};
        }
        Floats logits(static_cast<std::size_t>(count) * static_cast<std::size_t>(g.vocab_size));
        MM_TRY_DONE(forward.run({&segment, 1}, plan_of(rows), context.rank, logits));
        if (count > 0) {
            sequence.commit(at + count);
        }
        out.insert(out.end(), logits.begin(), logits.end());
    }
    return Done{};
}

class ForwardRanks : public ::testing::TestWithParam<Case> {};

TEST_P(ForwardRanks, GiveTheBitsOfOneRankAloneWithUnevenAndIdleSteps) {
    const Case c = GetParam();
    std::mt19937 rng(static_cast<std::uint32_t>(c.ranks));
    Schedule schedule(6, std::vector<std::int32_t>(static_cast<std::size_t>(c.ranks)));
    for (auto& step : schedule) {
        for (auto& rows : step) {
            rows = std::array{0, 0, 1, 1, 7, 40}[rng() % 6];
        }
    }
    std::vector<Ids> texts;
    for (std::int32_t r = 0; r < c.ranks; ++r) {
        texts.push_back(random_tokens(c.model()->geometry(), 6 * 40, static_cast<std::uint32_t>(100 + r)));
    }
    std::vector<Floats> got(static_cast<std::size_t>(c.ranks));
    comm::RankGroup group(c.ranks);
    comm::SymmetricHeap heap;

    const auto ran = comm::run_ranks(group, heap, [&](const comm::RankContext& context) {
        const auto me = static_cast<std::size_t>(raw(context.rank));
        return run_rank(context, c, schedule, texts[me], got[me]);
    });

    ASSERT_TRUE(ran) << to_string(ran.error());
    auto alone = Solo::create(c.model(), {.profile = c.profile, .max_length = 256, .page_size = kPage}).take();
    for (std::size_t r = 0; r < got.size(); ++r) {
        std::int32_t total = 0;
        for (const auto& step : schedule) {
            total += step[r];
        }
        if (total == 0) {
            EXPECT_TRUE(got[r].empty());
            continue;
        }
        auto sequence = alone->open().take();
        const Floats want =
            alone->extend(sequence, std::span(texts[r]).first(static_cast<std::size_t>(total)), total).take();
        ASSERT_EQ(got[r].size(), want.size());
        EXPECT_EQ(std::memcmp(got[r].data(), want.data(), want.size() * sizeof(float)), 0) << "rank " << r;
    }
}

std::vector<Case> all_cases() {
    std::vector<Case> out;
    for (const auto profile : {Profile::kHf, Profile::kDs}) {
        for (const auto backend :
             {MoeBackend::kReference, MoeBackend::kStandard, MoeBackend::kMegaMoe1, MoeBackend::kMegaMoe2}) {
            for (const std::int32_t ranks : {1, 2, 3, 4, 8}) {
                out.push_back({profile, backend, ranks});
            }
        }
    }
    return out;
}

INSTANTIATE_TEST_SUITE_P(Cases, ForwardRanks, ::testing::ValuesIn(all_cases()), name_of);

TEST(ForwardRanks, ANumberOfRanksThatDoesNotDivideTheExpertsIsRefused) {
    comm::RankGroup group(3);
    comm::SymmetricHeap heap;

    const auto ran = comm::run_ranks(group, heap, [&](const comm::RankContext& context) -> Result<Done> {
        Workers workers(1);
        MM_TRY_DONE(moe::make_operator(MoeBackend::kStandard,
                                       operator_config(*testing::tiny(), Profile::kDs, cpu::Isa::kScalar, kMaxRows),
                                       context, workers));
        return Done{};
    });

    ASSERT_FALSE(ran);
    EXPECT_NE(ran.error().what.find("3 ranks do not divide the model's 16 experts"), std::string::npos)
        << ran.error().what;
}

}  // namespace
}  // namespace megamoe::model
