#include "lab/manifest/exact_text.h"

#include <utility>

namespace megamoe::lab {

std::optional<ExactText> exact_text(const TokenSource& tokens, std::vector<std::uint32_t> ids, std::size_t num_tokens,
                                    const std::function<std::uint32_t()>& next_id) {
    constexpr int kRounds = 10;
    for (int round = 0; round < kRounds; ++round) {
        std::string text = tokens.decode(ids);
        ids = tokens.encode(text);
        if (ids.size() == num_tokens) {
            return ExactText{std::move(text), std::move(ids)};
        }
        if (ids.size() > num_tokens) {
            ids.resize(num_tokens);
        }
        while (ids.size() < num_tokens) {
            ids.push_back(next_id());
        }
    }
    return std::nullopt;
}

}  // namespace megamoe::lab
