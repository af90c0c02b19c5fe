#include "frontend/text/detokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace megamoe::text {
namespace {

std::shared_ptr<const Tokenizer> mini() {
    static const auto tokenizer = Tokenizer::load("models/mini/tokenizer.json");
    return tokenizer.value();
}

// Single bytes stand at the beginning of the vocabulary; they break characters more often than words do.
rc::Gen<std::vector<std::int32_t>> id_lists() {
    return rc::gen::container<std::vector<std::int32_t>>(rc::gen::oneOf(rc::gen::inRange(-2, mini()->vocab_size() + 2),
                                                                        rc::gen::inRange(0, 300),
                                                                        rc::gen::element(0, 1, 2, 4091, 4095)));
}

TEST(Detokenizer, ThePiecesTogetherAreTheDecodedWhole) {
    EXPECT_TRUE(rc::check([] {
        const auto ids = *id_lists();
        const auto skip_special = *rc::gen::arbitrary<bool>();
        Detokenizer stream(mini(), skip_special);
        std::string text;
        for (const std::int32_t id : ids) {
            text += stream.push(id);
        }
        text += stream.flush();

        RC_ASSERT(text == mini()->decode(ids, skip_special));
    }));
}

TEST(Detokenizer, EveryPieceIsValidUtf8) {
    EXPECT_TRUE(rc::check([] {
        Detokenizer stream(mini(), false);
        for (const std::int32_t id : *id_lists()) {
            const std::string piece = stream.push(id);
            RC_ASSERT(repair_utf8(piece) == piece);
        }
    }));
}

TEST(Detokenizer, ACharacterOfSeveralTokensComesWithItsLast) {
    const std::vector<std::int32_t> ids = mini()->encode("𠀀");
    ASSERT_GT(ids.size(), 1U);
    Detokenizer stream(mini(), false);

    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
        EXPECT_EQ(stream.push(ids[i]), "");
    }
    EXPECT_EQ(stream.push(ids.back()), "𠀀");
    EXPECT_EQ(stream.flush(), "");
}

TEST(Detokenizer, AnUnfinishedCharacterEndsAsReplacement) {
    const std::vector<std::int32_t> ids = mini()->encode("𠀀");
    Detokenizer stream(mini(), false);

    EXPECT_EQ(stream.push(ids.front()), "");
    EXPECT_EQ(stream.flush(), kReplacement);
    EXPECT_EQ(stream.flush(), "");
}

}  // namespace
}  // namespace megamoe::text
