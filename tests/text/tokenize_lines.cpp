// Runs the tokenizer over lines, for comparison with another one:
// tokenize_lines TOKENIZER_JSON encode|literal|decode|skip.
// encode, literal (added tokens are ordinary text): a JSON string a line -> a JSON array of ids a line;
// decode, skip (without special tokens): the other way round.
#include <fmt/core.h>

#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/text/detokenizer.h"
#include "frontend/text/tokenizer.h"

namespace megamoe::text {
namespace {

// Token by token, so that the comparison covers the stream form too.
std::string decode_stream(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<std::int32_t>& ids,
                          bool skip_special) {
    Detokenizer stream(tokenizer, skip_special);
    std::string text;
    for (const std::int32_t id : ids) {
        text += stream.push(id);
    }
    return text + stream.flush();
}

int run(const std::string& path, const std::string& mode) {
    const auto tokenizer = Tokenizer::load(path);
    if (!tokenizer) {
        fmt::print(stderr, "{}\n", to_string(tokenizer.error()));
        return 1;
    }
    for (std::string line; std::getline(std::cin, line);) {
        const auto input = nlohmann::json::parse(line);
        nlohmann::json output;
        if (mode == "encode" || mode == "literal") {
            const AddedTokens added = mode == "encode" ? AddedTokens::kMatch : AddedTokens::kIgnore;
            output = tokenizer.value()->encode(input.get<std::string>(), added);
        } else {
            output = decode_stream(tokenizer.value(), input.get<std::vector<std::int32_t>>(), mode == "skip");
        }
        std::cout << output.dump() << '\n';
    }
    return 0;
}

}  // namespace
}  // namespace megamoe::text

int main(int argc, char** argv) {
    if (argc != 3) {
        fmt::print(stderr, "usage: tokenize_lines TOKENIZER_JSON encode|literal|decode|skip\n");
        return 2;
    }
    return megamoe::text::run(argv[1], argv[2]);
}
