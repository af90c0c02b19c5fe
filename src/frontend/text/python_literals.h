// The string literals of a Python source text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace megamoe::text {

// The value of each literal, in order; literals that stand side by side are one, as in Python. Knows comments, single
// and triple quotes, the escapes \n \t \r \\ \' \", a backslash at a line's end, and the r prefix; other escapes and
// the placeholders of f-strings stay as written. An unterminated literal ends with the text.
std::vector<std::string> python_string_literals(std::string_view source);

}  // namespace megamoe::text
