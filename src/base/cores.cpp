#include "base/cores.h"

#include <pthread.h>
#include <sched.h>

namespace megamoe {

std::vector<std::int32_t> allowed_cores() {
    std::vector<std::int32_t> cores;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (std::int32_t core = 0; core < CPU_SETSIZE; ++core) {
            if (CPU_ISSET(static_cast<std::size_t>(core), &set)) {
                cores.push_back(core);
            }
        }
    }
    return cores;
}

bool keep_on_cores(std::span<const std::int32_t> cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::int32_t core : cores) {
        CPU_SET(static_cast<std::size_t>(core), &set);
    }
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

}  // namespace megamoe
