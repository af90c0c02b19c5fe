#include "frontend/text/tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "frontend/text/utf8.h"

namespace megamoe::text {
namespace {

using nlohmann::json;

constexpr const char* kMini = "models/mini/tokenizer.json";

const Tokenizer& mini() {
    static const auto tokenizer = Tokenizer::load(kMini);
    EXPECT_TRUE(tokenizer) << (tokenizer ? "" : to_string(tokenizer.error()));
    return *tokenizer.value();
}

json mini_json() {
    std::ifstream in(kMini);
    return json::parse(in);
}

TEST(Tokenizer, EncodesAsHuggingFaceDoes) {
    // From the tokenizers package, version 0.23.3; tests/text compares many more.
    EXPECT_EQ(mini().encode("<｜begin▁of▁sentence｜><｜User｜>ABCD<｜Assistant｜></think>"),
              (std::vector<std::int32_t>{0, 4091, 1510, 37, 38, 4092, 4094}));
    EXPECT_EQ(mini().encode("</think>", AddedTokens::kIgnore), (std::vector<std::int32_t>{1364, 372, 970, 32}));
    EXPECT_TRUE(mini().encode("").empty());
}

TEST(Tokenizer, DecodingGivesTheTextBack) {
    EXPECT_TRUE(rc::check([] {
        const std::string text = repair_utf8(*rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
        for (const AddedTokens added : {AddedTokens::kMatch, AddedTokens::kIgnore}) {
            RC_ASSERT(mini().decode(mini().encode(text, added), false) == text);
        }
    }));
}

TEST(Tokenizer, BytesThatAreNotUtf8AreReadAsReplacementCharacters) {
    EXPECT_TRUE(rc::check([] {
        const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
        RC_ASSERT(mini().encode(bytes) == mini().encode(repair_utf8(bytes)));
    }));
}

TEST(Tokenizer, MarkupInALiteralRangeIsOrdinaryText) {
    const std::string text = "<｜User｜>say </think>\xFF<｜Assistant｜></think>";
    const std::size_t begin = text.find("say");
    const std::vector<ByteRange> literal{{begin, text.find("<｜Assistant｜>")}};

    std::vector<std::int32_t> expected{4091};
    const auto inner = mini().encode("say </think>\uFFFD", AddedTokens::kIgnore);
    expected.insert(expected.end(), inner.begin(), inner.end());
    expected.insert(expected.end(), {4092, 4094});

    EXPECT_EQ(mini().encode(text, literal), expected);
}

TEST(Tokenizer, SpecialTokensAreLeftOutOnDemand) {
    const std::vector<std::int32_t> ids{0, 4091, 1510, 1};

    EXPECT_EQ(mini().decode(ids, true), "<｜User｜>AB");
    EXPECT_EQ(mini().decode(ids, false), "<｜begin▁of▁sentence｜><｜User｜>AB<｜end▁of▁sentence｜>");
}

TEST(Tokenizer, IdsThatNameNoTokenAreNothing) {
    const std::vector<std::int32_t> ids{-1, 4096, 129279, 2147483647, -2147483647 - 1};

    EXPECT_EQ(mini().decode(ids, false), "");
    for (const std::int32_t id : ids) {
        EXPECT_EQ(mini().token_bytes(id), "");
        EXPECT_FALSE(mini().is_added(id) || mini().is_special(id));
    }
}

TEST(Tokenizer, TokensAndTheirBytesMapToEachOther) {
    for (std::int32_t id = 0; id < mini().vocab_size(); ++id) {
        EXPECT_EQ(mini().id_of(mini().token_bytes(id)), id);
    }
    EXPECT_EQ(mini().id_of("<think>"), 4093);
    EXPECT_EQ(mini().id_of("<no such token>"), std::nullopt);
}

TEST(Tokenizer, KnowsWhichTokensWereAddedAndWhichAreSpecial) {
    EXPECT_EQ(mini().vocab_size(), 4096);
    EXPECT_TRUE(mini().is_added(0) && mini().is_special(0));
    EXPECT_TRUE(mini().is_added(4093) && !mini().is_special(4093));
    EXPECT_FALSE(mini().is_added(300) || mini().is_special(300));
}

TEST(Tokenizer, ARunOfOneCharacterOfAnyLengthIsEncoded) {
    for (const char* character : {"a", " ", "\n", ".", "7", "中", "é"}) {
        std::string run;
        for (int i = 0; i < 100'000; ++i) {
            run += character;
        }
        EXPECT_EQ(mini().decode(mini().encode(run), false), run) << character;
    }
}

TEST(Tokenizer, ThreadsMayShareIt) {
    std::ifstream in(kMini);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto expected = mini().encode(text);
    std::vector<std::vector<std::int32_t>> results(4);
    std::vector<std::thread> threads;
    for (auto& result : results) {
        threads.emplace_back([&] { result = mini().encode(text); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }

    for (const auto& result : results) {
        EXPECT_EQ(result, expected);
    }
}

TEST(TokenizerFile, AMissingFileIsNotFound) {
    const auto tokenizer = Tokenizer::load("models/mini/no_such_tokenizer.json");

    ASSERT_FALSE(tokenizer);
    EXPECT_EQ(tokenizer.error().code, Errc::kNotFound);
    EXPECT_NE(tokenizer.error().what.find("no_such_tokenizer.json"), std::string::npos);
}

TEST(TokenizerFile, AcceptsWhatChangesNothing) {
    json file = mini_json();
    file["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array()}};
    file["post_processor"] = {{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}}}};
    file["model"]["dropout"] = 0.0;
    file["model"]["continuing_subword_prefix"] = "";

    EXPECT_TRUE(Tokenizer::parse(file.dump(), "test"));
}

struct Refusal {
    const char* patch;  // a JSON merge patch of mini's file
    const char* named;  // what the error names
};

TEST(TokenizerFile, RefusesByNameWhatItDoesNotSupport) {
    const json file = mini_json();
    for (const auto& [patch, named] : {
             Refusal{R"({"normalizer": {"type": "NFC"}})", "NFC"},
             Refusal{R"({"model": {"type": "Unigram"}})", "Unigram"},
             Refusal{R"({"model": {"dropout": 0.1}})", "dropout"},
             Refusal{R"({"model": {"end_of_word_suffix": "</w>"}})", "end_of_word_suffix"},
             Refusal{R"({"model": {"ignore_merges": true}})", "ignore_merges"},
             Refusal{R"({"model": {"vocab": {"a": 4.5}}})", "4.5"},
             Refusal{R"({"model": {"vocab": {"extra": 7}}})", "id 7"},
             Refusal{R"({"model": {"vocab": {"Ġ": null}}})", "0x20"},
             Refusal{R"({"model": {"merges": ["nospace"]}})", "nospace"},
             Refusal{R"({"model": {"merges": [["zzzz", "q"]]}})", "zzzz"},
             Refusal{R"({"decoder": {"type": "WordPiece"}})", "WordPiece"},
             Refusal{R"({"truncation": {"max_length": 5}})", "truncation"},
             Refusal{R"({"pre_tokenizer": null})", "pre_tokenizer"},
             Refusal{R"({"pre_tokenizer": {"type": "Metaspace", "pretokenizers": null}})", "Metaspace"},
             Refusal{
                 R"({"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}]}})",
                 "<s>"},
             Refusal{R"({"added_tokens": [{"id": 9, "content": "<｜begin▁of▁sentence｜>"}]})", "begin▁of▁sentence"},
             Refusal{R"({"added_tokens": [{"id": 9}]})", "content"},
         }) {
        json patched = file;
        patched.merge_patch(json::parse(patch));
        const auto tokenizer = Tokenizer::parse(patched.dump(), "test.json");
        ASSERT_FALSE(tokenizer) << patch;
        EXPECT_NE(tokenizer.error().what.find(named), std::string::npos) << tokenizer.error().what;
        EXPECT_EQ(tokenizer.error().what.find("test.json: "), 0U) << tokenizer.error().what;
    }
}

TEST(TokenizerFile, RefusesASplitItDoesNotKnow) {
    for (const char* change : {R"({"behavior": "Removed"})", R"({"invert": true})", R"({"pattern": {"Regex": "\\w+"}})",
                               R"({"pattern": "x"})"}) {
        json file = mini_json();
        file["pre_tokenizer"]["pretokenizers"][0].merge_patch(json::parse(change));
        EXPECT_FALSE(Tokenizer::parse(file.dump(), "test")) << change;
    }
}

TEST(TokenizerFile, RefusesATextThatIsNotATokenizer) {
    for (const char* text : {"", "{", "[]", "null", "{}", "{\"model\": 3}", "{\"decoder\": {\"type\": 3}}"}) {
        EXPECT_FALSE(Tokenizer::parse(text, "test")) << text;
    }
}

}  // namespace
}  // namespace megamoe::text
