#include "lab/manifest/prompt_draw.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "lab/core/files.h"
#include "lab/core/rng.h"
#include "lab/manifest/token_pool.h"

namespace megamoe::lab {
namespace {

// Moves a redraw far away from all row indices.
constexpr std::uint64_t kRedraw = std::uint64_t{1} << 40;
constexpr int kDraws = 8;
constexpr std::uint64_t kPrefixIndex = ~std::uint64_t{0};

// Repeats one try with other ids until its text has the exact length.
template <class Try>
Result<ExactText> redraw_until_exact(std::uint64_t index, std::size_t num_tokens, const Try& attempt) {
    for (int draw = 0; draw < kDraws; ++draw) {
        if (std::optional<ExactText> found = attempt(index)) {
            return *std::move(found);
        }
        index += kRedraw;
    }
    return Error{Errc::kFailedPrecondition,
                 fmt::format("found no text of exactly {} tokens in {} draws", num_tokens, kDraws),
                 "use --prompt-format ids, or another length"};
}

class RandomDraw final : public PromptDraw {
  public:
    RandomDraw(const GenerateOptions& options, const TokenSource& tokens, TokenPool pool)
        : tokens_(tokens), pool_(std::move(pool)), seed_(options.seed), format_(options.prompt_format) {
        Rng rng = Rng::stream(seed_, "prefix", kPrefixIndex);
        for (std::uint32_t k = 0; k < options.prefix_len; ++k) {
            prefix_.push_back(pool_.draw(rng));
        }
    }

    Result<ExactText> draw(std::uint64_t index, std::size_t num_tokens) const override {
        return redraw_until_exact(index, num_tokens, [&](std::uint64_t at) -> std::optional<ExactText> {
            Rng rng = Rng::stream(seed_, "tok", at);
            std::vector<std::uint32_t> ids = prefix_;
            while (ids.size() < num_tokens) {
                ids.push_back(pool_.draw(rng));
            }
            if (format_ == PromptFormat::kIds) {
                return ExactText{.text = {}, .ids = std::move(ids)};
            }
            return exact_text(tokens_, std::move(ids), num_tokens, [&] { return pool_.draw(rng); });
        });
    }

  private:
    const TokenSource& tokens_;
    TokenPool pool_;
    std::uint64_t seed_;
    PromptFormat format_;
    std::vector<std::uint32_t> prefix_;
};

class TextDraw final : public PromptDraw {
  public:
    TextDraw(const GenerateOptions& options, const TokenSource& tokens, std::vector<std::uint32_t> corpus)
        : tokens_(tokens),
          corpus_(std::move(corpus)),
          seed_(options.seed),
          format_(options.prompt_format),
          prefix_len_(options.prefix_len) {}

    Result<ExactText> draw(std::uint64_t index, std::size_t num_tokens) const override {
        return redraw_until_exact(index, num_tokens, [&](std::uint64_t at) -> std::optional<ExactText> {
            // The common prefix is the beginning of the file; each prompt goes on somewhere else, and wraps at the end.
            std::size_t place = 0;
            const auto next = [&] { return corpus_[place++ % corpus_.size()]; };
            std::vector<std::uint32_t> ids;
            while (ids.size() < prefix_len_) {
                ids.push_back(next());
            }
            place = static_cast<std::size_t>(Rng::stream(seed_, "tok", at).below(corpus_.size()));
            while (ids.size() < num_tokens) {
                ids.push_back(next());
            }
            auto exact = exact_text(tokens_, std::move(ids), num_tokens, next);
            if (exact && !is_clean_utf8(exact->text)) {
                return std::nullopt;  // began or ended inside a character
            }
            if (exact && format_ == PromptFormat::kIds) {
                exact->text.clear();
            }
            return exact;
        });
    }

  private:
    const TokenSource& tokens_;
    std::vector<std::uint32_t> corpus_;
    std::uint64_t seed_;
    PromptFormat format_;
    std::uint32_t prefix_len_;
};

}  // namespace

Result<std::unique_ptr<PromptDraw>> make_prompt_draw(const GenerateOptions& options, const TokenSource& tokens) {
    if (options.dataset == "random") {
        MM_TRY(TokenPool pool, TokenPool::make(tokens, options.prompt_format, options.zipf_alpha));
        return std::unique_ptr<PromptDraw>(std::make_unique<RandomDraw>(options, tokens, std::move(pool)));
    }
    MM_TRY(const std::string text, read_file(options.dataset_path));
    std::vector<std::uint32_t> corpus = tokens.encode(text);
    if (corpus.size() < 64) {
        return invalid(fmt::format("{} has only {} tokens", options.dataset_path, corpus.size()),
                       "give a longer text: prompts are stretches of it");
    }
    return std::unique_ptr<PromptDraw>(std::make_unique<TextDraw>(options, tokens, std::move(corpus)));
}

}  // namespace megamoe::lab
