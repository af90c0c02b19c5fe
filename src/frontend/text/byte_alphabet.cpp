#include "frontend/text/byte_alphabet.h"

#include <array>
#include <cstddef>

namespace megamoe::text {
namespace {

// Printable Latin-1 characters stand for themselves; the other 68 bytes follow from U+0100 on.
constexpr bool stands_for_itself(int byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::size_t kNumCodePoints = 0x100 + 68;

struct Alphabet {
    std::array<std::uint16_t, 256> code_point{};
    std::array<std::int16_t, kNumCodePoints> byte{};  // -1: not in the alphabet
};

constexpr Alphabet make_alphabet() {
    Alphabet alphabet;
    alphabet.byte.fill(-1);
    std::uint16_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
        const auto index = static_cast<std::size_t>(byte);
        const std::uint16_t code_point = stands_for_itself(byte) ? static_cast<std::uint16_t>(byte) : next++;
        alphabet.code_point[index] = code_point;
        alphabet.byte[code_point] = static_cast<std::int16_t>(byte);
    }
    return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string spell_byte(std::uint8_t byte) {
    const int code_point = kAlphabet.code_point[byte];
    if (code_point < 0x80) {
        return {static_cast<char>(code_point)};
    }
    return {static_cast<char>(0xC0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 0x3F))};
}

std::string unspell(std::string_view spelling) {
    std::string bytes;
    for (std::size_t at = 0; at < spelling.size(); ++at) {
        std::size_t code_point = static_cast<unsigned char>(spelling[at]);
        if (code_point >= 0x80) {
            const bool two_bytes = code_point < 0xE0 && at + 1 < spelling.size();
            if (!two_bytes) {
                return std::string(spelling);
            }
            code_point = (code_point & 0x1F) << 6 | (static_cast<unsigned char>(spelling[++at]) & 0x3F);
        }
        if (code_point >= kNumCodePoints || kAlphabet.byte[code_point] < 0) {
            return std::string(spelling);
        }
        bytes += static_cast<char>(kAlphabet.byte[code_point]);
    }
    return bytes;
}

}  // namespace megamoe::text
