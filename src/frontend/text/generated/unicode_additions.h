// Code points that Unicode 16.0.0 assigns and 14.0.0 does not. Made by make_unicode_additions.py.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace megamoe::text {

struct UnicodeAddition {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::string_view category;  // general category, two letters
};

inline constexpr std::array kUnicodeAdditions{
    UnicodeAddition{0x897, 0x897, "Mn"},     UnicodeAddition{0xCF3, 0xCF3, "Mc"},
    UnicodeAddition{0xECE, 0xECE, "Mn"},     UnicodeAddition{0x1B4E, 0x1B4F, "Po"},
    UnicodeAddition{0x1B7F, 0x1B7F, "Po"},   UnicodeAddition{0x1C89, 0x1C89, "Lu"},
    UnicodeAddition{0x1C8A, 0x1C8A, "Ll"},   UnicodeAddition{0x2427, 0x2429, "So"},
    UnicodeAddition{0x2FFC, 0x2FFF, "So"},   UnicodeAddition{0x31E4, 0x31E5, "So"},
    UnicodeAddition{0x31EF, 0x31EF, "So"},   UnicodeAddition{0xA7CB, 0xA7CC, "Lu"},
    UnicodeAddition{0xA7CD, 0xA7CD, "Ll"},   UnicodeAddition{0xA7DA, 0xA7DA, "Lu"},
    UnicodeAddition{0xA7DB, 0xA7DB, "Ll"},   UnicodeAddition{0xA7DC, 0xA7DC, "Lu"},
    UnicodeAddition{0x105C0, 0x105F3, "Lo"}, UnicodeAddition{0x10D40, 0x10D49, "Nd"},
    UnicodeAddition{0x10D4A, 0x10D4D, "Lo"}, UnicodeAddition{0x10D4E, 0x10D4E, "Lm"},
    UnicodeAddition{0x10D4F, 0x10D4F, "Lo"}, UnicodeAddition{0x10D50, 0x10D65, "Lu"},
    UnicodeAddition{0x10D69, 0x10D6D, "Mn"}, UnicodeAddition{0x10D6E, 0x10D6E, "Pd"},
    UnicodeAddition{0x10D6F, 0x10D6F, "Lm"}, UnicodeAddition{0x10D70, 0x10D85, "Ll"},
    UnicodeAddition{0x10D8E, 0x10D8F, "Sm"}, UnicodeAddition{0x10EC2, 0x10EC4, "Lo"},
    UnicodeAddition{0x10EFC, 0x10EFF, "Mn"}, UnicodeAddition{0x1123F, 0x11240, "Lo"},
    UnicodeAddition{0x11241, 0x11241, "Mn"}, UnicodeAddition{0x11380, 0x11389, "Lo"},
    UnicodeAddition{0x1138B, 0x1138B, "Lo"}, UnicodeAddition{0x1138E, 0x1138E, "Lo"},
    UnicodeAddition{0x11390, 0x113B5, "Lo"}, UnicodeAddition{0x113B7, 0x113B7, "Lo"},
    UnicodeAddition{0x113B8, 0x113BA, "Mc"}, UnicodeAddition{0x113BB, 0x113C0, "Mn"},
    UnicodeAddition{0x113C2, 0x113C2, "Mc"}, UnicodeAddition{0x113C5, 0x113C5, "Mc"},
    UnicodeAddition{0x113C7, 0x113CA, "Mc"}, UnicodeAddition{0x113CC, 0x113CD, "Mc"},
    UnicodeAddition{0x113CE, 0x113CE, "Mn"}, UnicodeAddition{0x113CF, 0x113CF, "Mc"},
    UnicodeAddition{0x113D0, 0x113D0, "Mn"}, UnicodeAddition{0x113D1, 0x113D1, "Lo"},
    UnicodeAddition{0x113D2, 0x113D2, "Mn"}, UnicodeAddition{0x113D3, 0x113D3, "Lo"},
    UnicodeAddition{0x113D4, 0x113D5, "Po"}, UnicodeAddition{0x113D7, 0x113D8, "Po"},
    UnicodeAddition{0x113E1, 0x113E2, "Mn"}, UnicodeAddition{0x116D0, 0x116E3, "Nd"},
    UnicodeAddition{0x11B00, 0x11B09, "Po"}, UnicodeAddition{0x11BC0, 0x11BE0, "Lo"},
    UnicodeAddition{0x11BE1, 0x11BE1, "Po"}, UnicodeAddition{0x11BF0, 0x11BF9, "Nd"},
    UnicodeAddition{0x11F00, 0x11F01, "Mn"}, UnicodeAddition{0x11F02, 0x11F02, "Lo"},
    UnicodeAddition{0x11F03, 0x11F03, "Mc"}, UnicodeAddition{0x11F04, 0x11F10, "Lo"},
    UnicodeAddition{0x11F12, 0x11F33, "Lo"}, UnicodeAddition{0x11F34, 0x11F35, "Mc"},
    UnicodeAddition{0x11F36, 0x11F3A, "Mn"}, UnicodeAddition{0x11F3E, 0x11F3F, "Mc"},
    UnicodeAddition{0x11F40, 0x11F40, "Mn"}, UnicodeAddition{0x11F41, 0x11F41, "Mc"},
    UnicodeAddition{0x11F42, 0x11F42, "Mn"}, UnicodeAddition{0x11F43, 0x11F4F, "Po"},
    UnicodeAddition{0x11F50, 0x11F59, "Nd"}, UnicodeAddition{0x11F5A, 0x11F5A, "Mn"},
    UnicodeAddition{0x1342F, 0x1342F, "Lo"}, UnicodeAddition{0x13439, 0x1343F, "Cf"},
    UnicodeAddition{0x13440, 0x13440, "Mn"}, UnicodeAddition{0x13441, 0x13446, "Lo"},
    UnicodeAddition{0x13447, 0x13455, "Mn"}, UnicodeAddition{0x13460, 0x143FA, "Lo"},
    UnicodeAddition{0x16100, 0x1611D, "Lo"}, UnicodeAddition{0x1611E, 0x16129, "Mn"},
    UnicodeAddition{0x1612A, 0x1612C, "Mc"}, UnicodeAddition{0x1612D, 0x1612F, "Mn"},
    UnicodeAddition{0x16130, 0x16139, "Nd"}, UnicodeAddition{0x16D40, 0x16D42, "Lm"},
    UnicodeAddition{0x16D43, 0x16D6A, "Lo"}, UnicodeAddition{0x16D6B, 0x16D6C, "Lm"},
    UnicodeAddition{0x16D6D, 0x16D6F, "Po"}, UnicodeAddition{0x16D70, 0x16D79, "Nd"},
    UnicodeAddition{0x18CFF, 0x18CFF, "Lo"}, UnicodeAddition{0x1B132, 0x1B132, "Lo"},
    UnicodeAddition{0x1B155, 0x1B155, "Lo"}, UnicodeAddition{0x1CC00, 0x1CCEF, "So"},
    UnicodeAddition{0x1CCF0, 0x1CCF9, "Nd"}, UnicodeAddition{0x1CD00, 0x1CEB3, "So"},
    UnicodeAddition{0x1D2C0, 0x1D2D3, "No"}, UnicodeAddition{0x1DF25, 0x1DF2A, "Ll"},
    UnicodeAddition{0x1E030, 0x1E06D, "Lm"}, UnicodeAddition{0x1E08F, 0x1E08F, "Mn"},
    UnicodeAddition{0x1E4D0, 0x1E4EA, "Lo"}, UnicodeAddition{0x1E4EB, 0x1E4EB, "Lm"},
    UnicodeAddition{0x1E4EC, 0x1E4EF, "Mn"}, UnicodeAddition{0x1E4F0, 0x1E4F9, "Nd"},
    UnicodeAddition{0x1E5D0, 0x1E5ED, "Lo"}, UnicodeAddition{0x1E5EE, 0x1E5EF, "Mn"},
    UnicodeAddition{0x1E5F0, 0x1E5F0, "Lo"}, UnicodeAddition{0x1E5F1, 0x1E5FA, "Nd"},
    UnicodeAddition{0x1E5FF, 0x1E5FF, "Po"}, UnicodeAddition{0x1F6DC, 0x1F6DC, "So"},
    UnicodeAddition{0x1F774, 0x1F776, "So"}, UnicodeAddition{0x1F77B, 0x1F77F, "So"},
    UnicodeAddition{0x1F7D9, 0x1F7D9, "So"}, UnicodeAddition{0x1F8B2, 0x1F8BB, "So"},
    UnicodeAddition{0x1F8C0, 0x1F8C1, "So"}, UnicodeAddition{0x1FA75, 0x1FA77, "So"},
    UnicodeAddition{0x1FA87, 0x1FA89, "So"}, UnicodeAddition{0x1FA8F, 0x1FA8F, "So"},
    UnicodeAddition{0x1FAAD, 0x1FAAF, "So"}, UnicodeAddition{0x1FABB, 0x1FABF, "So"},
    UnicodeAddition{0x1FAC6, 0x1FAC6, "So"}, UnicodeAddition{0x1FACE, 0x1FACF, "So"},
    UnicodeAddition{0x1FADA, 0x1FADC, "So"}, UnicodeAddition{0x1FADF, 0x1FADF, "So"},
    UnicodeAddition{0x1FAE8, 0x1FAE9, "So"}, UnicodeAddition{0x1FAF7, 0x1FAF8, "So"},
    UnicodeAddition{0x1FBCB, 0x1FBEF, "So"}, UnicodeAddition{0x2B739, 0x2B739, "Lo"},
    UnicodeAddition{0x2EBF0, 0x2EE5D, "Lo"}, UnicodeAddition{0x31350, 0x323AF, "Lo"},
};

}  // namespace megamoe::text
