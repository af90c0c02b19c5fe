#include "weights/synth_tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace megamoe::weights {
namespace {

using nlohmann::ordered_json;

constexpr std::int32_t kMinVocab = 512;
constexpr std::array<std::string_view, 3> kFirstTokens{"<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>",
                                                       "<｜▁pad▁｜>"};
constexpr std::array<std::string_view, 5> kChatTokens{"<｜User｜>", "<｜Assistant｜>", "<think>", "</think>",
                                                      "｜DSML｜"};
constexpr std::string_view kSpace = "Ġ";                             // what the byte 32 looks like in a vocabulary
constexpr std::string_view kLetters = "etaoinshrdlcumwfgypbvkjxqz";  // common ones first

// Splits of the family's pre-tokeniser.
// Spec  model spec, 6.1
constexpr std::string_view kDigits = R"(\p{N}{1,3})";
constexpr std::string_view kCjk = "[一-龥぀-ゟ゠-ヿ]+";
constexpr std::string_view kWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string utf8(std::uint32_t code_point) {  // below U+0800
    if (code_point < 0x80) {
        return {static_cast<char>(code_point)};
    }
    return {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
}

// The characters that stand for the 256 bytes: printable Latin-1 ones for themselves, the others from U+0100 on.
std::vector<std::string> byte_alphabet() {
    std::vector<std::string> alphabet;
    for (std::uint32_t c = '!'; c <= 0xFF; ++c) {
        if (c <= '~' || (c >= 0xA1 && c != 0xAD)) {
            alphabet.push_back(utf8(c));
        }
    }
    for (std::uint32_t c = 0x100; alphabet.size() < 256; ++c) {
        alphabet.push_back(utf8(c));
    }
    return alphabet;
}

using Merge = std::pair<std::string, std::string>;

// At most `count` merges whose parts are bytes or earlier merges, no result twice.
std::vector<Merge> choose_merges(std::size_t count) {
    std::vector<std::string> pairs;
    std::vector<Merge> merges;
    const auto add = [&](std::string_view left, std::string_view right) {
        if (merges.size() < count) {
            merges.emplace_back(left, right);
        }
    };
    for (std::size_t letter = 0; letter < kLetters.size(); ++letter) {
        add(kSpace, kLetters.substr(letter, 1));
    }
    // Along the diagonals: "ee", then "et" and "te", ... so that common letters meet early.
    for (std::size_t sum = 0; sum < 2 * kLetters.size(); ++sum) {
        for (std::size_t i = 0; i <= sum; ++i) {
            if (i < kLetters.size() && sum - i < kLetters.size()) {
                add(kLetters.substr(i, 1), kLetters.substr(sum - i, 1));
                pairs.push_back({kLetters[i], kLetters[sum - i]});
            }
        }
    }
    for (const std::string& pair : pairs) {
        for (std::size_t letter = 0; letter < kLetters.size(); ++letter) {
            add(pair, kLetters.substr(letter, 1));
        }
    }
    for (std::size_t i = 0; i < pairs.size() && merges.size() < count; ++i) {
        for (const std::string& second : pairs) {
            add(pairs[i], second);
        }
    }
    return merges;
}

ordered_json added_token(std::int32_t id, std::string_view content, bool special) {
    return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
            {"rstrip", false}, {"normalized", false}, {"special", special}};
}

ordered_json split(std::string_view pattern) {
    return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}

ordered_json byte_level(bool prefix_space, bool use_regex) {
    return {
        {"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

}  // namespace

Result<std::string> synth_tokenizer_json(std::int32_t vocab_size) {
    const std::vector<std::string> alphabet = byte_alphabet();
    const std::size_t fixed = kFirstTokens.size() + alphabet.size() + kChatTokens.size();
    if (vocab_size < kMinVocab) {
        return invalid(fmt::format("vocab_size {} is below {}, too small for a tokenizer", vocab_size, kMinVocab));
    }
    const std::vector<Merge> merges = choose_merges(static_cast<std::size_t>(vocab_size) - fixed);
    if (merges.size() + fixed != static_cast<std::size_t>(vocab_size)) {
        return invalid(fmt::format("vocab_size {} is above {}, the largest synthetic vocabulary", vocab_size,
                                   merges.size() + fixed));
    }
    ordered_json added = ordered_json::array();
    std::vector<std::string> vocabulary;
    for (const std::string_view token : kFirstTokens) {
        added.push_back(added_token(static_cast<std::int32_t>(vocabulary.size()), token, /*special=*/true));
        vocabulary.emplace_back(token);
    }
    vocabulary.insert(vocabulary.end(), alphabet.begin(), alphabet.end());
    ordered_json merge_list = ordered_json::array();
    for (const auto& [left, right] : merges) {
        merge_list.push_back({left, right});
        vocabulary.push_back(left + right);
    }
    for (std::size_t i = 0; i < kChatTokens.size(); ++i) {  // not "special": decoding keeps them
        added.push_back(
            added_token(static_cast<std::int32_t>(vocabulary.size() + i), kChatTokens[i], /*special=*/false));
    }
    // Written as a text of its own: an ordered_json object looks its keys up one by one.
    std::string ids;
    for (std::size_t id = 0; id < vocabulary.size(); ++id) {
        ids += fmt::format("{}{}:{}", id == 0 ? "" : ",", nlohmann::json(vocabulary[id]).dump(), id);
    }
    const ordered_json pre_tokenizer{
        {"type", "Sequence"},
        {"pretokenizers", {split(kDigits), split(kCjk), split(kWords), byte_level(false, false)}}};
    return fmt::format(
        R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":null,"pre_tokenizer":{},)"
        R"("post_processor":null,"decoder":{},"model":{{"type":"BPE","dropout":null,"unk_token":null,)"
        R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,)"
        R"("ignore_merges":false,"vocab":{{{}}},"merges":{}}}}})",
        added.dump(), pre_tokenizer.dump(), byte_level(true, true).dump(), ids, merge_list.dump());
}

}  // namespace megamoe::weights
