#include "weights/synth_tokenizer.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "weights/testing_files.h"

namespace megamoe::weights {
namespace {

using nlohmann::json;

json tokenizer_of(std::int32_t vocab_size) {
    return json::parse(synth_tokenizer_json(vocab_size).value());
}

TEST(SynthTokenizer, FillsEveryIdOnce) {
    for (const std::int32_t vocab_size : {512, 513, 1000, 4096, 129280}) {
        const json tokenizer = tokenizer_of(vocab_size);
        std::map<std::int32_t, std::string> tokens;
        for (const auto& [token, id] : tokenizer["model"]["vocab"].items()) {
            EXPECT_TRUE(tokens.emplace(id.get<std::int32_t>(), token).second);
        }
        for (const json& added : tokenizer["added_tokens"]) {
            tokens.emplace(added["id"].get<std::int32_t>(), added["content"].get<std::string>());
        }
        EXPECT_EQ(tokens.size(), static_cast<std::size_t>(vocab_size));
        EXPECT_EQ(tokens.begin()->first, 0);
        EXPECT_EQ(tokens.rbegin()->first, vocab_size - 1);
    }
}

TEST(SynthTokenizer, MergesOnlyWhatExistsAlready) {
    const json tokenizer = tokenizer_of(30000);
    const json& vocab = tokenizer["model"]["vocab"];
    std::set<std::string> known;
    for (const auto& [token, id] : vocab.items()) {
        if (id.get<int>() < 3 + 256) {
            known.insert(token);
        }
    }
    for (const json& merge : tokenizer["model"]["merges"]) {
        const auto left = merge[0].get<std::string>();
        const auto right = merge[1].get<std::string>();
        EXPECT_TRUE(known.contains(left) && known.contains(right)) << left << " " << right;
        EXPECT_TRUE(known.insert(left + right).second) << left << " " << right;
        EXPECT_TRUE(vocab.contains(left + right));
    }
}

TEST(SynthTokenizer, HasTheStructureOfTheMiniModels) {
    json ours = tokenizer_of(4096);
    json minis = json::parse(testing::read_file("models/mini/tokenizer.json"));
    std::set<std::string> our_bytes;
    std::set<std::string> mini_bytes;
    for (const auto& [token, id] : ours["model"]["vocab"].items()) {
        if (id.get<int>() < 3 + 256) {
            our_bytes.insert(token);
            EXPECT_EQ(minis["model"]["vocab"][token], id);
        }
    }
    for (json* tokenizer : {&ours, &minis}) {
        (*tokenizer)["model"].erase("vocab");
        (*tokenizer)["model"].erase("merges");
    }
    EXPECT_EQ(ours, minis);  // added tokens, pre-tokeniser, decoder, options
    EXPECT_EQ(our_bytes.size(), 259U);
}

TEST(SynthTokenizer, RefusesSizesItCannotFill) {
    EXPECT_FALSE(synth_tokenizer_json(511));
    const auto large = synth_tokenizer_json(1 << 20);
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error().what, "vocab_size 1048576 is above 475518, the largest synthetic vocabulary");
}

}  // namespace
}  // namespace megamoe::weights
