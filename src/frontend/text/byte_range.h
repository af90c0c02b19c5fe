// A part of a text, by its bytes.
#pragma once

#include <cstddef>

namespace megamoe::text {

// Bytes [begin, end).
struct ByteRange {
    std::size_t begin = 0;
    std::size_t end = 0;

    friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

}  // namespace megamoe::text
