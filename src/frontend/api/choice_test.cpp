#include "frontend/api/choice.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <memory>
#include <string>
#include <vector>

namespace megamoe::api {
namespace {

using engine::FinishReason;

std::shared_ptr<const text::Tokenizer> mini() {
    static const auto tokenizer = text::Tokenizer::load("models/mini/tokenizer.json");
    return tokenizer.value();
}

engine::Update token(std::int32_t id, FinishReason finish = FinishReason::kNone) {
    engine::Update update;
    update.token = id;
    update.finish = finish;
    return update;
}

// Pushes the tokens of `text`, the last with `finish`.
void push(Choice& choice, const std::string& text, FinishReason finish = FinishReason::kNone) {
    const auto ids = mini()->encode(text);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        choice.push(token(ids[i], i + 1 == ids.size() ? finish : FinishReason::kNone));
    }
}

TEST(Choice, AllDeltasTogetherAreTheTextOfTheTokens) {
    EXPECT_TRUE(rc::check([](const std::vector<std::uint16_t>& numbers) {
        std::vector<std::int32_t> ids;
        for (const std::uint16_t number : numbers) {
            ids.push_back(number % mini()->vocab_size());
        }
        Choice choice(mini(), {}, false);
        std::string text;
        std::vector<std::int32_t> seen;
        for (const std::int32_t id : ids) {
            choice.push(token(id));
            const Delta delta = choice.take();
            text += delta.content;
            seen.insert(seen.end(), delta.tokens.begin(), delta.tokens.end());
        }
        choice.push(token(-1, FinishReason::kAbort));
        text += choice.take().content;

        RC_ASSERT(text == mini()->decode(ids, /*skip_special=*/true));
        RC_ASSERT(seen == ids);
    }));
}

TEST(Choice, AStopStringEndsItBeforeTheEngineAndIsNotShown) {
    Choice choice(mini(), {.stop = {"never", "END"}}, false);

    push(choice, "some words END and more");

    EXPECT_EQ(choice.finish(), FinishReason::kStop);
    EXPECT_EQ(choice.matched(), Matched("END"));
    EXPECT_EQ(choice.take().content, "some words ");
}

TEST(Choice, AStopStringIsKeptIfWished) {
    Choice choice(mini(), {.stop = {"END"}, .keep_stop = true}, false);

    push(choice, "some words END and more");

    EXPECT_EQ(choice.take().content, "some words END");
}

TEST(Choice, NoBeginningOfAStopStringIsShownAndItComesAtTheEndIfItWasNone) {
    Choice choice(mini(), {.stop = {"words of wisdom"}}, false);

    push(choice, "some words of");
    EXPECT_EQ(choice.take().content, "some ");
    choice.push(token(-1, FinishReason::kLength));

    EXPECT_EQ(choice.take().content, "words of");
    EXPECT_EQ(choice.finish(), FinishReason::kLength);
}

TEST(Choice, AStopStringInTheLastTokenIsAStopAndNotALength) {
    Choice choice(mini(), {.stop = {"END"}}, false);

    push(choice, "some words END", FinishReason::kLength);

    EXPECT_EQ(choice.finish(), FinishReason::kStop);
}

TEST(Choice, StopStringsDoNotCountBeforeMinTokens) {
    GenerationOptions options{.stop = {"END"}};
    options.sampling.min_tokens = static_cast<std::int32_t>(mini()->encode("a END b").size());
    Choice choice(mini(), options, false);

    push(choice, "a END b");
    EXPECT_EQ(choice.finish(), FinishReason::kNone);
    push(choice, " c END");

    EXPECT_EQ(choice.finish(), FinishReason::kStop);
    EXPECT_EQ(choice.take().content, "a END b c ");
}

TEST(Choice, AStopTokenCountsAndIsNotShown) {
    const std::int32_t stop = mini()->encode(" stop").back();
    Choice choice(mini(), {}, false);
    push(choice, "words");

    engine::Update end = token(stop, FinishReason::kStop);
    end.stop_token = stop;
    choice.push(end);

    EXPECT_EQ(choice.matched(), Matched(stop));
    EXPECT_EQ(choice.completion_tokens(), static_cast<std::int32_t>(mini()->encode("words").size()) + 1);
    EXPECT_EQ(choice.take().content, "words");
}

TEST(Choice, ReasoningEndsAtItsTagAndIsCounted) {
    Choice choice(mini(), {}, /*is_thinking=*/true);

    push(choice, "let me see</think>it is four", FinishReason::kLength);

    const Delta delta = choice.take();
    EXPECT_EQ(delta.reasoning, "let me see");
    EXPECT_EQ(delta.content, "it is four");
    EXPECT_EQ(choice.reasoning_tokens(), static_cast<std::int32_t>(mini()->encode("let me see</think>").size()));
}

TEST(Choice, ReasoningThatIsCutStaysReasoning) {
    Choice choice(mini(), {}, /*is_thinking=*/true);

    push(choice, "let me </thi", FinishReason::kLength);

    const Delta delta = choice.take();
    EXPECT_EQ(delta.reasoning, "let me </thi");
    EXPECT_EQ(delta.content, "");
}

TEST(Choice, ScoresCarryTheTokenAndTheBest) {
    GenerationOptions options;
    options.sampling.num_logprobs = 1;
    Choice choice(mini(), options, false);

    engine::Update update = token(50);
    update.logprob = {50, -1.5F};
    update.top_logprobs = {{51, -0.5F}};
    choice.push(update);

    const Delta delta = choice.take();
    ASSERT_EQ(delta.scores.size(), 1U);
    EXPECT_EQ(delta.scores[0].token, 50);
    EXPECT_EQ(delta.scores[0].logprob, -1.5F);
    EXPECT_EQ(delta.scores[0].best[0].token, 51);
}

TEST(Choice, NothingChangesBehindTheEnd) {
    Choice choice(mini(), {.stop = {"END"}}, false);
    push(choice, "a END");
    const std::int32_t counted = choice.completion_tokens();
    choice.take();

    push(choice, " b", FinishReason::kLength);

    EXPECT_FALSE(choice.has_news());
    EXPECT_EQ(choice.completion_tokens(), counted);
    EXPECT_EQ(choice.finish(), FinishReason::kStop);
}

TEST(ReasoningSplitter, DoesNotDependOnTheCuts) {
    EXPECT_TRUE(rc::check([](const std::vector<bool>& cuts) {
        const std::string text = "a<b </thin </think></think>c";
        ReasoningSplitter splitter(true);
        std::string reasoning;
        std::string content;
        const auto take = [&](const ReasoningSplitter::Output& part) {
            reasoning += part.reasoning;
            content += part.content;
        };
        std::string piece;
        for (std::size_t i = 0; i < text.size(); ++i) {
            piece += text[i];
            if (i < cuts.size() && cuts[i]) {
                take(splitter.push(piece));
                piece.clear();
            }
        }
        take(splitter.push(piece));
        take(splitter.flush());

        RC_ASSERT(reasoning == "a<b </thin ");
        RC_ASSERT(content == "</think>c");
    }));
}

}  // namespace
}  // namespace megamoe::api
