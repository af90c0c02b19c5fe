// The closest of a set of names to a mistyped one, for "did you mean" hints.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace megamoe {

// In    candidates  the names that would have been right
// Out   the candidate at the smallest edit distance (insert, delete, replace, swap of neighbours: 1 each), the first of
//       equals; "" when none is near: a hint that misses by more than a third of the name confuses more than it helps
// Cost  O(name * candidate) for each candidate
std::string nearest(std::string_view name, std::span<const std::string> candidates);

}  // namespace megamoe
