#include "lab/manifest/row_hash.h"

#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>

namespace megamoe::lab {
namespace {

static_assert(std::endian::native == std::endian::little, "the hash is defined over little-endian bytes");

class FieldHash {
  public:
    void add(std::string_view bytes) {
        const std::uint64_t length = bytes.size();
        hash_.update(bytes_of(length));
        hash_.update(bytes);
    }
    void add(std::span<const std::uint32_t> ids) {
        add(std::string_view(reinterpret_cast<const char*>(ids.data()), ids.size_bytes()));
    }
    template <class Number>
    requires std::is_arithmetic_v<Number>
    void add(Number value) { add(bytes_of(value)); }
    template <class T>
    void add(const std::optional<T>& value) {
        if (value) {
            add(*value);
        } else {
            add(std::string_view());
        }
    }
    Digest finish() { return hash_.finish(); }

  private:
    template <class Number>
    static std::string_view bytes_of(const Number& value) {
        return {reinterpret_cast<const char*>(&value), sizeof value};
    }

    Sha256 hash_;
};

std::string_view prompt_bytes(const Row& row) {
    if (!row.text.empty()) {
        return row.text;
    }
    return {reinterpret_cast<const char*>(row.ids.data()), row.ids.size() * sizeof(std::uint32_t)};
}

}  // namespace

Digest row_digest(const Row& row) {
    FieldHash hash;
    hash.add(std::string_view(row.id));
    hash.add(to_string(row.role));
    hash.add(std::string_view(row.text));
    hash.add(std::span<const std::uint32_t>(row.ids));
    hash.add(row.in);
    hash.add(row.out);
    hash.add(row.at_us);
    hash.add(row.sess ? std::optional<std::string_view>(*row.sess) : std::nullopt);
    hash.add(row.turn);
    hash.add(row.gap_us);
    hash.add(std::string_view(row.params));
    return hash.finish();
}

std::string content_sha256(std::span<const Row> rows) {
    Sha256 all;
    for (const Row& row : rows) {
        all.update(row_digest(row));
    }
    return to_hex(all.finish());
}

std::string prompts_sha256(std::span<const Row> rows) {
    Sha256 all;
    for (const Row& row : rows) {
        if (row.role == Role::kMeasure) {
            FieldHash hash;
            hash.add(prompt_bytes(row));
            hash.add(row.in);
            hash.add(row.out);
            all.update(hash.finish());
        }
    }
    return to_hex(all.finish());
}

Digest sent_digest(const SentPrompt& prompt) {
    FieldHash hash;
    hash.add(prompt.id);
    hash.add(prompt.text);
    hash.add(prompt.ids);
    hash.add(prompt.max_tokens);
    hash.add(prompt.temperature);
    hash.add(prompt.top_p);
    hash.add(prompt.top_k);
    hash.add(static_cast<std::uint8_t>(prompt.ignore_eos));
    return hash.finish();
}

std::string replay_sha256(std::span<const Digest> digests) {
    Sha256 all;
    for (const Digest& digest : digests) {
        all.update(digest);
    }
    return to_hex(all.finish());
}

}  // namespace megamoe::lab
