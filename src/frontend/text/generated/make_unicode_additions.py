#!/usr/bin/env python3
"""Writes unicode_additions.h: needs PyPI's unicodedata2 of the newer version, and a Python whose own tables are the older."""
import unicodedata
import unicodedata2

OLD, NEW = "14.0.0", "16.0.0"
assert (unicodedata.unidata_version, unicodedata2.unidata_version) == (OLD, NEW)

rows = []
for code_point in range(0x110000):
    char = chr(code_point)
    category = unicodedata2.category(char)
    if unicodedata.category(char) != "Cn" or category == "Cn":
        continue
    if rows and rows[-1][1] == code_point - 1 and rows[-1][2] == category:
        rows[-1][1] = code_point
    else:
        rows.append([code_point, code_point, category])

print(f"""// Code points that Unicode {NEW} assigns and {OLD} does not. Made by make_unicode_additions.py.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace megamoe::text {{

struct UnicodeAddition {{
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::string_view category;  // general category, two letters
}};

inline constexpr std::array kUnicodeAdditions{{""")
for first, last, category in rows:
    print(f'    UnicodeAddition{{0x{first:X}, 0x{last:X}, "{category}"}},')
print("};\n\n}  // namespace megamoe::text")
