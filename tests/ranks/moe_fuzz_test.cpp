// Random calls of the MoE operator over rank threads: every backend gives the bits of the one-rank reference.
//
// A session is one set of sizes and of operators, and calls them many times in a row. Half of the sessions run as fast
// as they can, so that launches overlap; the others stop between calls to lay canaries into all memory that the next
// call must write before it reads. Half of them are slowed down at random edges of the protocol.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "moe_testing.h"

namespace megamoe::moe {
namespace {

using testing::GuardedOperator;
using Random = std::mt19937;

std::int32_t pick(Random& random, std::int32_t first, std::int32_t last) {
    return std::uniform_int_distribution<std::int32_t>(first, last)(random);
}
bool one_in(Random& random, std::int32_t n) {
    return pick(random, 1, n) == 1;
}

struct Session {
    std::uint32_t seed = 0;
    std::int32_t num_ranks = 1;
    std::int32_t threads = 1;  // of a rank
    std::int32_t steps = 0;
    ops::WeightFormat format{};
    OperatorConfig config;
    std::vector<MoeBackend> backends;
    bool canaries = false;
    std::uint32_t slow_edges = 0;  // bit e: edge e
    std::uint32_t first_epoch = 1;
};

std::string describe(const Session& s) {
    return fmt::format(
        "session {}: {} ranks of {} threads, E {} K {} H {} I {} MTPR {}, profile {}, format {}, isa {}, "
        "canaries {}, slow edges {:#x}, first launch {}",
        s.seed, s.num_ranks, s.threads, s.config.num_experts, s.config.top_k, s.config.math.hidden, s.config.math.inter,
        s.config.max_rows, s.config.math.ds() ? "ds" : "hf", static_cast<int>(s.format), cpu::name(s.config.math.isa),
        s.canaries, s.slow_edges, s.first_epoch);
}

Session make_session(std::uint32_t seed, std::int32_t steps) {
    Random random(seed);
    Session s;
    s.seed = seed;
    s.steps = steps;
    s.num_ranks = pick(random, 1, 8);
    s.threads = one_in(random, 3) ? pick(random, 2, 3) : 1;
    s.format = std::array{ops::WeightFormat::kBf16, ops::WeightFormat::kFp8, ops::WeightFormat::kFp4}[random() % 3];
    const auto size = [&] { return one_in(random, 6) ? 128 * pick(random, 2, 3) : 128; };
    const auto isas = cpu::isas_of_this_machine();
    s.config.math = {.isa = one_in(random, 8) ? isas[random() % isas.size()] : isas.back(),
                     .profile = one_in(random, 2) ? Profile::kDs : Profile::kHf,
                     .hidden = size(),
                     .inter = size(),
                     .limit = 10};
    s.config.num_experts = s.num_ranks * pick(random, 1, testing::kPoolExperts / s.num_ranks);
    s.config.top_k = pick(random, 1, std::min(16, s.config.num_experts));
    s.config.max_rows = std::array{1, 3, 8, 8, 8, 40}[random() % 6];
    using enum MoeBackend;
    s.backends = std::array<std::vector<MoeBackend>, 6>{{{kMegaMoe2},
                                                         {kMegaMoe1},
                                                         {kMegaMoe1, kMegaMoe2},
                                                         {kMegaMoe2, kMegaMoe1},
                                                         {kStandard, kMegaMoe2},
                                                         {kReference, kStandard, kMegaMoe1, kMegaMoe2}}}[random() % 6];
    s.canaries = one_in(random, 2);
    s.slow_edges = one_in(random, 2) ? static_cast<std::uint32_t>(random()) : 0;
    // Most sessions pass the wrap of the launch counter on their way.
    s.first_epoch = one_in(random, 4) ? 1 : 0xFFFFFFFFU - static_cast<std::uint32_t>(pick(random, 0, steps));
    return s;
}

// What one rank brings to one step, and what it must get.
struct Brought {
    std::int32_t rows = 0;
    std::int32_t dummy = -1;  // a row of NaN; -1: none
    std::vector<float> x;
    std::vector<std::int32_t> ids;
    std::vector<float> weights;
    std::vector<float> want;

    Input input() const {
        return rows == 0 ? Input{}
                         : Input{.x = x.data(), .expert_id = ids.data(), .weight = weights.data(), .rows = rows};
    }
};

// How a step's rows choose experts.
class Routing {
  public:
    Routing(const Session& s, Random& random)
        : experts_(s.config.num_experts), kind_(static_cast<Kind>(random() % 5)), hot_(pick(random, 0, experts_ - 1)) {
        const ExpertShard shard = shard_of(s.config, s.num_ranks, RankId{pick(random, 0, s.num_ranks - 1)});
        first_ = shard.first;
        last_ = shard.first + shard.count - 1;
    }

    void fill(Random& random, std::int32_t* ids, std::int32_t top_k) const {
        std::array<std::int32_t, testing::kPoolExperts> all;
        std::iota(all.begin(), all.end(), 0);
        std::shuffle(all.begin(), all.begin() + experts_, random);
        for (std::int32_t k = 0; k < top_k; ++k) {
            switch (kind_) {
                case Kind::kDistinct:
                    ids[k] = all[static_cast<std::size_t>(k)];
                    break;
                case Kind::kOneExpert:
                    ids[k] = hot_;
                    break;
                case Kind::kOneRank:
                    ids[k] = pick(random, first_, last_);
                    break;
                case Kind::kRepeated:
                    ids[k] = pick(random, 0, experts_ - 1);
                    break;
                case Kind::kHoles:
                    ids[k] = one_in(random, 2) ? all[static_cast<std::size_t>(k)]
                                               : std::array{-1, experts_, std::numeric_limits<std::int32_t>::min(),
                                                            std::numeric_limits<std::int32_t>::max()}[random() % 4];
                    break;
            }
        }
    }

  private:
    enum class Kind { kDistinct, kOneExpert, kOneRank, kRepeated, kHoles };
    std::int32_t experts_;
    Kind kind_;
    std::int32_t hot_;
    std::int32_t first_;  // experts of one rank
    std::int32_t last_;
};

Brought bring(const Session& s, const Routing& routing, Random& random) {
    const OperatorConfig& c = s.config;
    Brought b;
    b.rows = one_in(random, 3) ? 0 : one_in(random, 8) ? c.max_rows : pick(random, 0, std::min(c.max_rows, 3));
    const auto seed = static_cast<std::uint32_t>(random());
    b.x = cpu::random_floats(std::int64_t{b.rows} * c.math.hidden, seed, true);
    b.weights = cpu::random_floats(std::int64_t{b.rows} * c.top_k, seed + 1);
    b.ids.resize(b.weights.size());
    b.want.resize(b.x.size());
    for (std::int32_t row = 0; row < b.rows; ++row) {
        routing.fill(random, b.ids.data() + row * c.top_k, c.top_k);
    }
    if (b.rows > 0 && one_in(random, 6)) {
        b.dummy = pick(random, 0, b.rows - 1);
        std::fill_n(b.x.begin() + b.dummy * c.math.hidden, c.math.hidden, std::numeric_limits<float>::quiet_NaN());
    }
    return b;
}

// [step][rank]; `want` comes from the reference on one rank, row by row independent of all others.
Result<std::vector<std::vector<Brought>>> bring_all(const Session& s, const LayerExperts& experts) {
    Random random(~s.seed);
    comm::RankGroup group(1);
    comm::SymmetricHeap heap;
    const comm::RankContext alone{.rank = RankId{0}, .size = 1, .group = group, .heap = heap};
    Workers workers(1);
    MM_TRY(const auto reference, make_operator(MoeBackend::kReference, s.config, alone, workers));
    std::vector<std::vector<Brought>> all(static_cast<std::size_t>(s.steps));
    for (auto& step : all) {
        const Routing routing(s, random);
        for (std::int32_t r = 0; r < s.num_ranks; ++r) {
            Brought& b = step.emplace_back(bring(s, routing, random));
            MM_TRY_DONE(reference->forward(b.input(), experts, testing::plan_of({b.rows}), b.want.data()));
        }
    }
    return all;
}

// Lets others run, or holds the core, at one call in eight.
void dawdle() {
    thread_local std::minstd_rand random(
        static_cast<std::uint32_t>(std::hash<std::thread::id>{}(std::this_thread::get_id())));
    const auto n = static_cast<std::uint32_t>(random()) >> 4;
    if (n % 8 != 0) {
        return;
    }
    for (std::uint32_t i = 0; i < n / 8 % 16; ++i) {
        std::this_thread::yield();
    }
    for (std::uint32_t i = 0; n % 64 == 0 && i < n / 64 % 1000; ++i) {
        __builtin_ia32_pause();
    }
}

Result<Done> compare(const Brought& b, const std::vector<float>& out, std::int32_t hidden) {
    for (std::int32_t row = 0; row < b.rows; ++row) {
        const auto begin = static_cast<std::size_t>(row * hidden);
        const bool finite = std::all_of(out.begin() + row * hidden, out.begin() + (row + 1) * hidden,
                                        [](float v) { return std::isfinite(v); });
        if (row == b.dummy) {
            continue;
        }
        if (!finite || std::memcmp(&out[begin], &b.want[begin], static_cast<std::size_t>(hidden) * 4) != 0) {
            return Error{
                Errc::kInternal, fmt::format("row {} of {} {}", row, b.rows, finite ? "differs" : "is not finite"), {}};
        }
    }
    return Done{};
}

class RankRun {
  public:
    RankRun(const Session& s, const LayerExperts& experts, const std::vector<std::vector<Brought>>& steps,
            const comm::RankContext& context)
        : s_(s), experts_(experts), steps_(steps), context_(context) {}

    Result<Done> run() {
        Workers workers(s_.threads);
        MegaOptions options{.timeout_ms = 60000, .first_epoch = s_.first_epoch, .delay = {}};
        if (s_.slow_edges != 0) {
            options.delay = [edges = s_.slow_edges](Edge edge) {
                if ((edges >> static_cast<std::uint32_t>(edge) & 1) != 0) {
                    dawdle();
                }
            };
        }
        std::vector<GuardedOperator> operators;
        for (const MoeBackend backend : s_.backends) {
            MM_TRY(auto op, GuardedOperator::make(backend, s_.config, options, context_, workers));
            operators.push_back(std::move(op));
        }
        for (const auto& step : steps_) {
            for (GuardedOperator& op : operators) {
                MM_TRY_DONE(call(op, step));
            }
        }
        MM_TRY_DONE(context_.barrier("test.last"));
        for (const GuardedOperator& op : operators) {
            if (!op.red_zones_are_whole()) {
                return Error{Errc::kInternal, fmt::format("{}: a red zone was written", op.name()), {}};
            }
        }
        return Done{};
    }

  private:
    Result<Done> call(GuardedOperator& op, const std::vector<Brought>& step) {
        const Brought& b = step[static_cast<std::size_t>(raw(context_.rank))];
        if (s_.canaries) {
            MM_TRY_DONE(context_.barrier("test.lay"));
            op.lay_canaries();
            MM_TRY_DONE(context_.barrier("test.laid"));
        }
        dawdle();
        std::vector<std::int32_t> rows;
        std::vector<const std::vector<std::int32_t>*> ids;
        for (const Brought& one : step) {
            rows.push_back(one.rows);
            ids.push_back(&one.ids);
        }
        out_.assign(b.want.size(), std::numeric_limits<float>::quiet_NaN());
        MM_TRY_DONE(op.forward(b.input(), experts_, testing::plan_of(rows), out_.data()));
        if (const auto same = compare(b, out_, s_.config.math.hidden); !same) {
            return Error{Errc::kInternal,
                         fmt::format("{} step {}: {}", op.name(), &step - steps_.data(), same.error().what),
                         {}};
        }
        if (s_.canaries) {
            MM_TRY_DONE(context_.barrier("test.called"));
            if (!op.canaries_are_whole(ids)) {
                return Error{
                    Errc::kInternal, fmt::format("{} step {}: a canary is gone", op.name(), &step - steps_.data()), {}};
            }
        }
        return Done{};
    }

    const Session& s_;
    const LayerExperts& experts_;
    const std::vector<std::vector<Brought>>& steps_;
    const comm::RankContext& context_;
    std::vector<float> out_;
};

// Runs sessions, numbered from `first`, until so many collective calls were made.
void fuzz(std::uint32_t first, std::int64_t calls, std::int32_t steps) {
    std::int64_t made = 0;
    std::uint32_t seed = first;
    for (; made < calls; ++seed) {
        const Session s = make_session(seed, steps);
        SCOPED_TRACE(describe(s));
        const LayerExperts& experts = testing::experts_of(s.format, s.config.math.hidden, s.config.math.inter);
        const auto brought = bring_all(s, experts);
        ASSERT_TRUE(brought) << to_string(brought.error());
        comm::RankGroup group(s.num_ranks);
        comm::SymmetricHeap heap;

        const auto ran = comm::run_ranks(group, heap, [&](const comm::RankContext& context) {
            return RankRun(s, experts, brought.value(), context).run();
        });

        ASSERT_TRUE(ran) << to_string(ran.error());
        made += s.steps * static_cast<std::int64_t>(s.backends.size());
    }
    std::printf("%lld calls in %u sessions\n", static_cast<long long>(made), seed - first);
}

TEST(MoeFuzz, ThreeThousandCallsGiveTheBitsOfTheReference) {
    fuzz(0, 3000, 25);
}

// 100000 calls in four parts of some minutes. CTest runs each under the label slow.
class MoeFuzzPart : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(MoeFuzzPart, DISABLED_TwentyFiveThousandCallsGiveTheBitsOfTheReference) {
    fuzz(1'000'000 * (GetParam() + 1), 25'000, 60);
}

INSTANTIATE_TEST_SUITE_P(Parts, MoeFuzzPart, ::testing::Range(0U, 4U));

}  // namespace
}  // namespace megamoe::moe
