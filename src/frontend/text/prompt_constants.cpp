#include "frontend/text/prompt_constants.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "frontend/text/python_literals.h"

namespace megamoe::text {
namespace {

// SHA-256 of the texts.
constexpr std::string_view kToolsHead = "c7c9042638154a237b5d1bd48be772374a35a4d24c5cacfd1ffbd92703da329c";
constexpr std::string_view kToolsTail = "690702850fe256512cb1ee67c4e436ecb3e735c71ebee77ca45ff357a75fb5a7";
constexpr std::string_view kResponseFormatHead = "5200f58413f49f3957c43beddbc97bead023232cb5934fad0c1997c30c139112";
constexpr std::string_view kEffortA = "f7a24f3b3050d4a83781e9b755b316aae2ec1d9dc87562541d90bcb04d7350f7";
constexpr std::string_view kEffortB = "53fb31b8392ec5b4a926481943efc67636748f137c1a49d493a7af4d4fa55d2c";

std::string sha256(std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    MM_CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1, "EVP_Digest");
    std::string hex;
    for (unsigned int i = 0; i < size; ++i) {
        hex += fmt::format("{:02x}", digest[i]);
    }
    return hex;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

using Halves = std::pair<std::string, std::string>;

// The texts around the placeholder of a template; nullopt if it has not exactly one.
std::optional<Halves> split_at(const std::string& text, std::string_view placeholder) {
    const std::size_t at = text.find(placeholder);
    if (at == std::string::npos || text.find(placeholder, at + 1) != std::string::npos) {
        return std::nullopt;
    }
    return Halves{text.substr(0, at), text.substr(at + placeholder.size())};
}

void take_tools(std::string literal, PromptConstants& found) {
    replace_all(literal, "{dsml_token}", "｜DSML｜");
    replace_all(literal, "{thinking_start_token}", "<think>");
    replace_all(literal, "{thinking_end_token}", "</think>");
    const auto halves = split_at(literal, "{tool_schemas}");
    if (halves && sha256(halves->first) == kToolsHead && sha256(halves->second) == kToolsTail) {
        found.tools_head = halves->first;
        found.tools_tail = halves->second;
    }
}

void take_response_format(const std::string& literal, PromptConstants& found) {
    const auto halves = split_at(literal, "{schema}");
    if (halves && halves->second.empty() && sha256(halves->first) == kResponseFormatHead) {
        found.response_format_head = halves->first;
    }
}

}  // namespace

Result<PromptConstants> load_prompt_constants(const std::filesystem::path& model_dir) {
    const std::filesystem::path path = model_dir / "encoding" / "encoding_dsv4.py";
    std::ifstream in(path, std::ios::binary);
    const std::string python{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in) {
        return Error{Errc::kNotFound, fmt::format("{}: no such file", path.string()),
                     "copy encoding/ from the released checkpoint to serve tools, response formats and effort levels"};
    }
    return parse_prompt_constants(python, path.string());
}

// A text is known by its hash, so it does not matter to which name or table the file binds it. The effort texts tell
// the two forms of the file apart: the preview has A alone, for "max"; the official one A for "high" and B for "max".
Result<PromptConstants> parse_prompt_constants(std::string_view python, const std::string& name) {
    PromptConstants found;
    std::string effort_a;
    std::string effort_b;
    for (const std::string& literal : python_string_literals(python)) {
        take_tools(literal, found);
        take_response_format(literal, found);
        const std::string hash = sha256(literal);
        if (hash == kEffortA) {
            effort_a = literal;
        } else if (hash == kEffortB) {
            effort_b = literal;
        }
    }
    for (const auto& [text, what] : {std::pair(&found.tools_head, "the tools section"),
                                     std::pair(&found.response_format_head, "the response format section"),
                                     std::pair(&effort_a, "the reasoning effort text")}) {
        if (text->empty()) {
            return invalid(fmt::format("{}: {} with the known SHA-256 is not in it", name, what),
                           "use the file of a DeepSeek-V4 checkpoint, unchanged");
        }
    }
    const bool is_official = !effort_b.empty();
    found.effort_high = is_official ? effort_a : "";
    found.effort_max = is_official ? effort_b : effort_a;
    return found;
}

}  // namespace megamoe::text
