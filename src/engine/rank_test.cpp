// The step loop in lock step on one thread: every rank's proposal, the agreed plan, every rank's step, in order.
#include "engine/rank.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/testing.h"
#include "kv/pool_plan.h"

namespace megamoe::engine {
namespace {

using testing::Answer;
using testing::expected_answer;

struct Shape {
    std::int32_t num_ranks = 1;
    std::int32_t max_running = 4;
    std::int32_t chunk = 100;
    std::int32_t token_pages = 40;  // page 0 included; a page is 8 tokens
    std::int32_t window_pages = 40;
    double conservativeness = 1;
    step::MixedPhase mixed_phase = step::MixedPhase::kDeferDecode;
};

// What one client heard.
struct Heard {
    Answer answer;
    std::int32_t num_last = 0;  // updates that said it is over
    Error error;
};

class Simulation {
  public:
    explicit Simulation(const Shape& shape) : shape_(shape) {
        policy_ = {.max_tokens_per_rank = 128, .mixed_phase = shape.mixed_phase};
        const kv::PoolLayout layout = kv::make_layout(testing::fake_geometry(), 8, 4).take();
        for (std::int32_t r = 0; r < shape.num_ranks; ++r) {
            Place& place = places_.emplace_back();
            place.pools = kv::Pools::create(layout, {.token_pages = shape.token_pages,
                                                     .window_pages = shape.window_pages,
                                                     .state_slots = shape.max_running + 1})
                              .take();
            place.port = std::make_unique<testing::FakeForward>(RankId{r}, *place.pools, testing::ForwardHook{});
            place.mailbox = std::make_unique<Mailbox>();
            const RankConfig config{.scheduler = {.rank = r,
                                                  .max_running = shape.max_running,
                                                  .max_prefill_rows = shape.chunk,
                                                  .eos_id = testing::kEos,
                                                  .conservativeness = shape.conservativeness},
                                    .vocab_size = testing::kVocab};
            place.rank = std::make_unique<Rank>(config, *place.pools, *place.port, *place.mailbox);
        }
    }

    void submit(std::int32_t rank, Request request) {
        Heard& heard = heard_[raw(request.id)];
        ASSERT_TRUE(box(rank).post(Arrival{
            .request = request, .seed = request.sampling.seed.value_or(0), .sink = [&heard](const Update& update) {
                heard.answer.finish = update.finish;
                heard.error = update.error;
                heard.num_last += update.finish == FinishReason::kNone ? 0 : 1;
                if (update.token >= 0) {
                    heard.answer.tokens.push_back(update.token);
                }
            }}));
    }
    void abort(std::int32_t rank, RequestId id) { ASSERT_TRUE(box(rank).post(Abort{id})); }

    // One pass of every rank. The plan, or nothing when an invariant broke (then `fault` says which).
    std::optional<step::StepPlan> step() {
        std::vector<step::StepProposal> proposals;
        for (Place& place : places_) {
            proposals.push_back(place.rank->propose(0));
            if (!place.rank->scheduler().idle() && proposals.back().n_tokens == 0) {
                return broke("a rank with requests proposes nothing");
            }
        }
        const auto plan = step::agree(proposals, policy_);
        if (!plan) {
            return broke(to_string(plan.error()));
        }
        for (Place& place : places_) {
            if (!plan.value().skipped()) {
                if (const auto ran = place.rank->run(plan.value()); !ran) {
                    return broke(to_string(ran.error()));
                }
            }
            if (const auto census = place.pools->census(place.rank->scheduler().live_sequences()); !census) {
                return broke(to_string(census.error()));
            }
            if (place.rank->step_no() != places_[0].rank->step_no()) {
                return broke("ranks count steps differently");
            }
        }
        return plan.value();
    }

    // Steps until nobody has work.
    bool finish() {
        for (int i = 0; i < 100'000; ++i) {
            const auto plan = step();
            if (!plan || plan->pause) {
                return plan.has_value();
            }
        }
        broke("no end after 100000 steps");
        return false;
    }

    const Heard& heard(RequestId id) { return heard_[raw(id)]; }
    RankStats stats(std::int32_t rank) { return box(rank).stats(); }
    const std::string& fault() const { return fault_; }
    std::int64_t capacity() const { return (shape_.token_pages - 1) * 8; }

  private:
    struct Place {
        std::unique_ptr<kv::Pools> pools;
        std::unique_ptr<testing::FakeForward> port;
        std::unique_ptr<Mailbox> mailbox;
        std::unique_ptr<Rank> rank;
    };

    Mailbox& box(std::int32_t rank) { return *places_[static_cast<std::size_t>(rank)].mailbox; }
    std::nullopt_t broke(std::string what) {
        fault_ = std::move(what);
        return std::nullopt;
    }

    Shape shape_;
    step::StepPolicy policy_;
    std::vector<Place> places_;
    std::map<std::uint64_t, Heard> heard_;
    std::string fault_;
};

Request make_request(std::uint64_t id, std::int32_t num_prompt, std::int32_t max_tokens) {
    Request request;
    request.id = RequestId{id};
    for (std::int32_t i = 0; i < num_prompt; ++i) {
        request.prompt.push_back(static_cast<std::int32_t>(2 + (id * 7 + static_cast<std::uint64_t>(i) * 3) % 30));
    }
    request.sampling.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    request.sampling.seed = id;
    return request;
}

// rc::gen::inRange grows with the case number; here every case may use the whole range.
rc::Gen<std::int32_t> range(std::int32_t from, std::int32_t to) {
    return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, to));
}

// One random client: when it comes, what it wants, when it gives up.
struct Client {
    std::int32_t rank = 0;
    std::int32_t arrives = 0;  // steps after the one before
    std::int32_t num_prompt = 1;
    std::int32_t max_tokens = 1;
    std::int32_t gives_up = 0;  // steps after arrival; 0 = never
    std::int32_t style = 0;
};

std::ostream& operator<<(std::ostream& out, const Client& c) {
    return out << "{rank " << c.rank << " +" << c.arrives << " prompt " << c.num_prompt << " max " << c.max_tokens
               << " gives_up " << c.gives_up << " style " << c.style << "}";
}

Request request_of(const Client& client, std::uint64_t id) {
    Request request = make_request(id, client.num_prompt, client.max_tokens);
    SamplingParams& p = request.sampling;
    p.ignore_eos = true;
    switch (client.style) {
        case 0:
            p.ignore_eos = false;
            break;
        case 1:
            p.temperature = 1;
            break;
        case 2:
            p.temperature = 0.7F, p.top_p = 0.9F, p.frequency_penalty = 0.5F, p.repetition_penalty = 1.2F;
            break;
        case 3:
            p.stop_token_ids = {5, 6};
            break;
        default:
            p.ignore_eos = false, p.min_tokens = client.max_tokens / 2;
            break;
    }
    return request;
}

rc::Gen<Client> any_client(const Shape& shape) {
    const std::int32_t most_prompt = std::min(60, (shape.token_pages - 1) * 8);
    return rc::gen::build<Client>(
        rc::gen::set(&Client::rank, range(0, shape.num_ranks)),
        rc::gen::set(&Client::arrives, rc::gen::weightedElement<std::int32_t>({{4, 0}, {1, 1}, {1, 5}})),
        rc::gen::set(&Client::num_prompt, rc::gen::oneOf(range(1, most_prompt + 1), range(1, 5))),
        rc::gen::set(&Client::max_tokens, range(1, 100)),
        rc::gen::set(&Client::gives_up, rc::gen::weightedElement<std::int32_t>({{6, 0}, {1, 1}, {1, 3}, {1, 12}})),
        rc::gen::set(&Client::style, range(0, 5)));
}

void check_heard(Simulation& sim, const Client& client, std::uint64_t id) {
    const Heard& heard = sim.heard(RequestId{id});
    RC_ASSERT(heard.num_last == 1);
    const Answer want = expected_answer(request_of(client, id));
    const FinishReason finish = heard.answer.finish;
    if (finish == FinishReason::kAbort || heard.error.code == Errc::kResourceExhausted) {
        // Cut short: what was said until then is right all the same.
        const bool too_long = client.num_prompt + client.max_tokens - 1 > sim.capacity();
        RC_ASSERT((finish == FinishReason::kError ? too_long : client.gives_up > 0));
        RC_ASSERT(heard.answer.tokens.size() <= want.tokens.size());
        RC_ASSERT(std::equal(heard.answer.tokens.begin(), heard.answer.tokens.end(), want.tokens.begin()));
        return;
    }
    RC_ASSERT(finish == want.finish);
    RC_ASSERT(heard.answer.tokens == want.tokens);
}

class RankProperty : public ::testing::TestWithParam<std::int32_t> {};

TEST_P(RankProperty, EveryRequestEndsOnceWithItsOwnTokensWhateverTheSchedule) {
    EXPECT_TRUE(rc::check([chunk = GetParam()] {
        Shape shape{.chunk = chunk};
        shape.num_ranks = *range(1, 4);
        shape.max_running = *range(1, 9);
        shape.token_pages = *range(2, 40);
        shape.window_pages = *range(3, 20);
        shape.conservativeness = *rc::gen::element(0.0, 0.3, 1.0);
        shape.mixed_phase = *rc::gen::element(step::MixedPhase::kDeferDecode, step::MixedPhase::kAllow);
        const auto clients = *rc::gen::container<std::vector<Client>>(any_client(shape));
        Simulation sim(shape);

        std::vector<std::pair<std::int64_t, std::size_t>> leaving;  // step, client
        std::int64_t now = 0;
        const auto pass = [&] {
            for (const auto& [when, c] : leaving) {
                if (when == now) {
                    sim.abort(clients[c].rank, RequestId{c + 1});
                }
            }
            RC_ASSERT(sim.step().has_value());
            ++now;
        };
        for (std::size_t c = 0; c < clients.size(); ++c) {
            for (std::int32_t i = 0; i < clients[c].arrives; ++i) {
                pass();
            }
            sim.submit(clients[c].rank, request_of(clients[c], c + 1));
            if (clients[c].gives_up > 0) {
                leaving.emplace_back(now + clients[c].gives_up, c);
            }
        }
        for (int i = 0; i < 13; ++i) {
            pass();  // the last ones to give up
        }
        if (!sim.finish()) {
            RC_FAIL(sim.fault());
        }

        std::int64_t retractions = 0;
        for (std::int32_t r = 0; r < shape.num_ranks; ++r) {
            RC_ASSERT(sim.stats(r).running == 0);
            RC_ASSERT(sim.stats(r).free_pages == sim.stats(r).total_pages);
            retractions += sim.stats(r).retractions;
        }
        for (std::size_t c = 0; c < clients.size(); ++c) {
            check_heard(sim, clients[c], c + 1);
        }
        RC_CLASSIFY(retractions > 0, "with retractions");
        RC_CLASSIFY(shape.num_ranks > 1, "several ranks");
    }));
}

TEST(Rank, AnIdleRankTakesPartInEveryStep) {
    Simulation sim({.num_ranks = 2});
    sim.submit(0, make_request(1, 5, 4));

    ASSERT_TRUE(sim.finish()) << sim.fault();

    EXPECT_EQ(sim.heard(RequestId{1}).answer.tokens, expected_answer(make_request(1, 5, 4)).tokens);
    const RankStats busy = sim.stats(0);
    EXPECT_EQ(busy.extend_steps, 1);
    EXPECT_EQ(sim.stats(1).idle_steps, busy.extend_steps + busy.decode_steps);
}

TEST(Rank, ADecodeThatWaitsForAnotherRanksPrefillGoesOnWhereItWas) {
    Simulation sim({.num_ranks = 2, .chunk = 5});
    const Request decoding = make_request(1, 5, 30);
    sim.submit(0, decoding);
    ASSERT_TRUE(sim.step());
    ASSERT_TRUE(sim.step());
    sim.submit(1, make_request(2, 25, 2));

    for (int chunk = 0; chunk < 5; ++chunk) {
        const auto plan = sim.step();
        ASSERT_TRUE(plan) << sim.fault();
        EXPECT_EQ(plan->phase, step::Phase::kExtend);
        EXPECT_EQ(plan->real[0], 0);
        EXPECT_EQ(plan->run[0], 1);
    }
    ASSERT_TRUE(sim.finish()) << sim.fault();

    EXPECT_EQ(sim.stats(0).idle_steps, 5);
    EXPECT_EQ(sim.heard(RequestId{1}).answer.tokens, expected_answer(decoding).tokens);
}

INSTANTIATE_TEST_SUITE_P(Chunks, RankProperty, ::testing::Values(1, 3, 5, 17, 100));

}  // namespace
}  // namespace megamoe::engine
