#include "frontend/text/tokenizer.h"

#include <fmt/core.h>

#include <array>
#include <fstream>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "frontend/text/byte_alphabet.h"
#include "frontend/text/tokenizer_file.h"
#include "frontend/text/utf8.h"

namespace megamoe::text {
namespace {

enum class Kind : std::uint8_t { kNone, kVocabulary, kAdded, kSpecial };

struct RepairedText {
    std::string text;
    std::vector<ByteRange> literal;
};

// Repairs each stretch between borders of `literal` on its own, so that the borders stay where they belong.
RepairedText repair_around(std::string_view text, std::span<const ByteRange> literal) {
    RepairedText repaired;
    repaired.text.reserve(text.size());
    std::size_t done = 0;
    const auto repair_to = [&](std::size_t end) {
        Utf8Repair repair;
        repair.append(text.substr(done, end - done), repaired.text);
        repair.finish(repaired.text);
        done = end;
        return repaired.text.size();
    };
    for (const ByteRange& range : literal) {
        MM_CHECK(done <= range.begin && range.begin <= range.end && range.end <= text.size(), "literal ranges", done,
                 range.begin, range.end, text.size());
        const std::size_t begin = repair_to(range.begin);
        const std::size_t end = repair_to(range.end);
        repaired.literal.push_back({begin, end});
    }
    repair_to(text.size());
    return repaired;
}

}  // namespace

struct Tokenizer::Impl {
    explicit Impl(TokenizerFile file)
        : bpe(file.byte_ids, file.merges, file.tokens),
          matcher(file.added),
          splitter(std::move(file.split_steps)),
          tokens(std::move(file.tokens)),
          kinds(tokens.size(), Kind::kVocabulary) {
        for (const AddedToken& token : file.added) {
            const auto id = static_cast<std::size_t>(token.id);
            if (id >= tokens.size()) {
                tokens.resize(id + 1);
                kinds.resize(id + 1, Kind::kVocabulary);
            }
            tokens[id] = unspell(token.content);
            kinds[id] = token.special ? Kind::kSpecial : Kind::kAdded;
        }
        for (std::size_t id = 0; id < tokens.size(); ++id) {
            if (tokens[id].empty()) {
                kinds[id] = Kind::kNone;
                continue;
            }
            const auto [entry, is_new] = ids.try_emplace(tokens[id], static_cast<std::int32_t>(id));
            if (!is_new && kinds[id] >= Kind::kAdded) {
                entry->second = static_cast<std::int32_t>(id);
            }
        }
    }

    Kind kind(std::int32_t id) const {
        return id >= 0 && id < static_cast<std::int32_t>(kinds.size()) ? kinds[static_cast<std::size_t>(id)]
                                                                       : Kind::kNone;
    }

    Bpe bpe;
    AddedTokenMatcher matcher;
    Splitter splitter;
    std::vector<std::string> tokens;  // bytes by id
    std::vector<Kind> kinds;          // by id
    std::unordered_map<std::string, std::int32_t> ids;
};

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string json{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in) {
        return Error{Errc::kNotFound, fmt::format("{}: no tokenizer can be read there", path.string()),
                     "the model directory needs a tokenizer.json"};
    }
    return parse(json, path.string());
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::parse(std::string_view json, const std::string& name) {
    MM_TRY(TokenizerFile file, parse_tokenizer_file(json, name));
    return std::shared_ptr<const Tokenizer>(new Tokenizer(std::make_unique<const Impl>(std::move(file))));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8, AddedTokens added) const {
    const std::array everything{ByteRange{0, utf8.size()}};
    return encode(utf8, added == AddedTokens::kMatch ? std::span<const ByteRange>() : everything);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8, std::span<const ByteRange> literal) const {
    const RepairedText input = repair_around(utf8, literal);
    std::vector<std::int32_t> ids;
    for (const Segment& segment : impl_->matcher.split(input.text, input.literal)) {
        if (segment.id >= 0) {
            ids.push_back(segment.id);
            continue;
        }
        const auto [begin, end] = segment.range;
        impl_->splitter.split(std::string_view(input.text).substr(begin, end - begin),
                              [&](std::string_view piece) { impl_->bpe.encode(piece, ids); });
    }
    return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
    std::string text;
    Utf8Repair repair;
    for (const std::int32_t id : ids) {
        if (!(skip_special && is_special(id))) {
            repair.append(token_bytes(id), text);
        }
    }
    repair.finish(text);
    return text;
}

std::string_view Tokenizer::token_bytes(std::int32_t id) const {
    return impl_->kind(id) == Kind::kNone ? std::string_view() : impl_->tokens[static_cast<std::size_t>(id)];
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view bytes) const {
    const auto found = impl_->ids.find(std::string(bytes));
    return found == impl_->ids.end() ? std::nullopt : std::optional(found->second);
}

std::int32_t Tokenizer::vocab_size() const {
    return static_cast<std::int32_t>(impl_->tokens.size());
}

bool Tokenizer::is_added(std::int32_t id) const {
    return impl_->kind(id) >= Kind::kAdded;
}

bool Tokenizer::is_special(std::int32_t id) const {
    return impl_->kind(id) == Kind::kSpecial;
}

}  // namespace megamoe::text
