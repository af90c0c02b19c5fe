#include "frontend/text/tokenizer_file.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "frontend/text/byte_alphabet.h"

namespace megamoe::text {
namespace {

using nlohmann::json;

constexpr std::int32_t kMaxId = 1 << 24;  // far above any vocabulary; bounds what a broken file can allocate

// GPT-2's own pattern, the one that ByteLevel's use_regex stands for.
constexpr std::string_view kByteLevelPattern =
    R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

const json kNull;

// The member `key` of an object; null if there is none.
const json& member(const json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() ? kNull : *found;
}

std::string type_of(const json& component) {
    return component.is_object() ? component.value("type", std::string("without a type")) : component.dump();
}

Error unsupported(std::string_view field, const std::string& value) {
    return invalid(fmt::format("{} {} is not supported", field, value),
                   "a byte-level BPE tokenizer as DeepSeek-V4's is needed");
}

Result<std::int32_t> read_id(const json& id, const std::string& content) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() >= kMaxId) {
        return invalid(fmt::format("token \"{}\" has the id {}, which is not in [0, {})", content, id.dump(), kMaxId));
    }
    return id.get<std::int32_t>();
}

using Vocabulary = std::unordered_map<std::string, std::int32_t>;  // spelling -> id

Result<Vocabulary> read_vocabulary(const json& model, TokenizerFile& file) {
    const json& vocab = member(model, "vocab");
    if (!vocab.is_object()) {
        return invalid("model.vocab is missing or not an object");
    }
    Vocabulary ids;
    for (const auto& [spelling, value] : vocab.items()) {
        MM_TRY(const std::int32_t id, read_id(value, spelling));
        const auto index = static_cast<std::size_t>(id);
        if (index >= file.tokens.size()) {
            file.tokens.resize(index + 1);
        }
        if (!file.tokens[index].empty()) {
            return invalid(fmt::format("model.vocab: two tokens have the id {}, one is \"{}\"", id, spelling));
        }
        file.tokens[index] = unspell(spelling);
        ids.emplace(spelling, id);
    }
    for (int byte = 0; byte < 256; ++byte) {
        const auto found = ids.find(spell_byte(static_cast<std::uint8_t>(byte)));
        if (found == ids.end()) {
            return invalid(fmt::format("model.vocab has no token for the byte 0x{:02X}", byte),
                           "the tokenizer is not byte-level, or not complete");
        }
        file.byte_ids[static_cast<std::size_t>(byte)] = found->second;
    }
    return ids;
}

Result<Done> read_merges(const json& model, const Vocabulary& ids, TokenizerFile& file) {
    const json& merges = member(model, "merges");
    if (!merges.is_array()) {
        return invalid("model.merges is missing or not an array");
    }
    file.merges.reserve(merges.size());
    for (const json& merge : merges) {
        std::string left;
        std::string right;
        if (merge.is_string()) {  // "a b": no symbol of the alphabet is a space
            const auto text = merge.get<std::string>();
            const std::size_t space = text.find(' ');
            left = text.substr(0, space);
            right = space == std::string::npos ? "" : text.substr(space + 1);
        } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
            left = merge[0].get<std::string>();
            right = merge[1].get<std::string>();
        }
        const auto left_id = ids.find(left);
        const auto right_id = ids.find(right);
        const auto result_id = ids.find(left + right);
        if (left_id == ids.end() || right_id == ids.end() || result_id == ids.end()) {
            return invalid(fmt::format("model.merges[{}] = {} does not join two tokens to a third", file.merges.size(),
                                       merge.dump()));
        }
        file.merges.push_back({left_id->second, right_id->second, result_id->second});
    }
    return Done{};
}

Result<Vocabulary> read_model(const json& model, TokenizerFile& file) {
    if (!model.is_object() || model.value("type", std::string("BPE")) != "BPE") {
        return unsupported("model", type_of(model));
    }
    const json& dropout = member(model, "dropout");
    if (!dropout.is_null() && dropout != 0) {
        return unsupported("model.dropout", dropout.dump());
    }
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        const json& value = member(model, affix);
        if (!value.is_null() && value != "") {
            return unsupported(fmt::format("model.{}", affix), value.dump());
        }
    }
    if (member(model, "ignore_merges") == true) {
        return unsupported("model.ignore_merges", "true");
    }
    MM_TRY(Vocabulary ids, read_vocabulary(model, file));
    MM_TRY_DONE(read_merges(model, ids, file));
    return ids;
}

Result<Done> read_added_tokens(const json& tokens, const Vocabulary& ids, TokenizerFile& file) {
    for (const json& entry : tokens) {
        AddedToken token;
        token.content = entry.at("content").get<std::string>();
        MM_TRY(token.id, read_id(entry.at("id"), token.content));
        token.special = entry.value("special", false);
        token.single_word = entry.value("single_word", false);
        token.lstrip = entry.value("lstrip", false);
        token.rstrip = entry.value("rstrip", false);
        token.normalized = entry.value("normalized", !token.special);
        const auto known = ids.find(token.content);
        if (known != ids.end() && known->second != token.id) {
            return invalid(fmt::format("added token \"{}\" has the id {} and in model.vocab {}", token.content,
                                       token.id, known->second));
        }
        if (!token.content.empty()) {
            file.added.push_back(std::move(token));
        }
    }
    return Done{};
}

Result<Done> read_split(const json& step, TokenizerFile& file) {
    const json& pattern = member(step, "pattern");
    const json& behavior = member(step, "behavior");
    if (behavior != "Isolated") {
        return unsupported("pre_tokenizer Split with behavior", behavior.dump());
    }
    if (member(step, "invert") == true) {
        return unsupported("pre_tokenizer Split with", "invert true");
    }
    if (pattern.is_object() && member(pattern, "Regex").is_string()) {
        MM_TRY(Regex regex, Regex::compile(pattern["Regex"].get<std::string>()));
        file.split_steps.emplace_back(std::move(regex));
    } else if (pattern.is_object() && member(pattern, "String").is_string()) {
        MM_TRY(Regex regex, Regex::compile_literal(pattern["String"].get<std::string>()));
        file.split_steps.emplace_back(std::move(regex));
    } else {
        return unsupported("pre_tokenizer Split with pattern", pattern.dump());
    }
    return Done{};
}

Result<Done> read_pre_tokenizer(const json& pre_tokenizer, TokenizerFile& file) {
    const bool is_sequence = pre_tokenizer.is_object() && type_of(pre_tokenizer) == "Sequence";
    const json steps = is_sequence ? member(pre_tokenizer, "pretokenizers") : json::array({pre_tokenizer});
    bool is_byte_level = false;
    for (const json& step : steps) {
        const std::string type = type_of(step);
        if (is_byte_level) {
            return unsupported("pre_tokenizer, behind ByteLevel:", type);
        }
        if (type == "Split") {
            MM_TRY_DONE(read_split(step, file));
        } else if (type == "ByteLevel") {
            is_byte_level = true;
            if (step.value("add_prefix_space", true)) {
                file.split_steps.emplace_back(PrefixSpace{});
            }
            if (step.value("use_regex", true)) {
                MM_TRY(Regex regex, Regex::compile(kByteLevelPattern));
                file.split_steps.emplace_back(std::move(regex));
            }
        } else {
            return unsupported("pre_tokenizer", type);
        }
    }
    if (!is_byte_level) {
        return unsupported("pre_tokenizer without", "ByteLevel");
    }
    return Done{};
}

// ByteLevel changes offsets only; a template is fine as long as it puts nothing beside the text.
Result<Done> check_post_processor(const json& post_processor) {
    if (post_processor.is_null() || type_of(post_processor) == "ByteLevel") {
        return Done{};
    }
    if (type_of(post_processor) == "Sequence") {
        for (const json& processor : member(post_processor, "processors")) {
            MM_TRY_DONE(check_post_processor(processor));
        }
        return Done{};
    }
    if (type_of(post_processor) == "TemplateProcessing") {
        for (const json& item : member(post_processor, "single")) {
            if (!item.contains("Sequence")) {
                return unsupported("post_processor TemplateProcessing that adds", item.dump());
            }
        }
        return Done{};
    }
    return unsupported("post_processor", type_of(post_processor));
}

Result<Done> check_pipeline(const json& root) {
    const json& normalizer = member(root, "normalizer");
    const bool no_normalizer =
        normalizer.is_null() || (type_of(normalizer) == "Sequence" && member(normalizer, "normalizers").empty());
    if (!no_normalizer) {
        return unsupported("normalizer", type_of(normalizer));
    }
    for (const char* key : {"truncation", "padding"}) {
        if (!member(root, key).is_null()) {
            return unsupported(key, member(root, key).dump());
        }
    }
    if (type_of(member(root, "decoder")) != "ByteLevel") {
        return unsupported("decoder", type_of(member(root, "decoder")));
    }
    return check_post_processor(member(root, "post_processor"));
}

Result<TokenizerFile> read_file(const json& root) {
    if (!root.is_object()) {
        return invalid("not a JSON object");
    }
    TokenizerFile file;
    MM_TRY_DONE(check_pipeline(root));
    MM_TRY_DONE(read_pre_tokenizer(member(root, "pre_tokenizer"), file));
    MM_TRY(const Vocabulary ids, read_model(member(root, "model"), file));
    MM_TRY_DONE(read_added_tokens(member(root, "added_tokens"), ids, file));
    return file;
}

}  // namespace

Result<TokenizerFile> parse_tokenizer_file(std::string_view json_text, const std::string& name) {
    const auto in_file = [&](const Error& error) {
        return Error{error.code, fmt::format("{}: {}", name, error.what), error.hint};
    };
    try {
        Result<TokenizerFile> file = read_file(json::parse(json_text));
        return file ? std::move(file) : in_file(file.error());
    } catch (const json::exception& error) {
        return in_file(invalid(error.what()));
    }
}

}  // namespace megamoe::text
