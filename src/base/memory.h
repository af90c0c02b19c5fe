// What memory this machine has left.
#pragma once

#include <cstdint>

namespace megamoe {

// MemAvailable, or the limit of this process's memory cgroup where that is lower; -1 where the kernel does not tell.
std::int64_t available_memory_bytes();

}  // namespace megamoe
