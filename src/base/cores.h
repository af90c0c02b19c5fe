// The cores this process may use, and keeping threads on some of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace megamoe {

// Ascending; empty where the system does not tell.
std::vector<std::int32_t> allowed_cores();

// The calling thread, and the threads it starts from now on, run on `cores` only. False: the system refused.
bool keep_on_cores(std::span<const std::int32_t> cores);

}  // namespace megamoe
