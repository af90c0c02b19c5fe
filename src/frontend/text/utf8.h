// Makes valid UTF-8 of any bytes, which may arrive in pieces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace megamoe::text {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Passes whole characters on and replaces each ill-formed sequence by one U+FFFD: its longest part that could still
// have begun a character counts as one ("maximal subpart", Unicode 3.9; Rust's and Python's rule), wherever it is cut.
class Utf8Repair {
  public:
    // Appends to `out` what `bytes` completes; holds back at most the 3 bytes of an unfinished character.
    void append(std::string_view bytes, std::string& out);
    // Appends U+FFFD if a character is unfinished, and starts anew.
    void finish(std::string& out);

  private:
    void begin(char byte, std::string& out);

    std::string held_;          // the unfinished character
    std::int32_t missing_ = 0;  // its bytes still to come
    unsigned char low_ = 0x80;  // range of the next one
    unsigned char high_ = 0xBF;
};

// The whole of `bytes`, repaired.
std::string repair_utf8(std::string_view bytes);

}  // namespace megamoe::text
