#include "base/memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace megamoe {
namespace {

std::int64_t read_number(const char* path) {
    std::ifstream in(path);
    std::int64_t value = -1;
    return in >> value ? value : -1;
}

std::int64_t mem_available() {
    std::ifstream in("/proc/meminfo");
    std::string key;
    std::int64_t kib = 0;
    while (in >> key >> kib) {
        if (key == "MemAvailable:") {
            return kib * 1024;
        }
        in.ignore(64, '\n');
    }
    return -1;
}

}  // namespace

std::int64_t available_memory_bytes() {
    const std::int64_t machine = mem_available();
    const std::int64_t limit = read_number("/sys/fs/cgroup/memory.max");  // "max" when unlimited: reads as -1
    const std::int64_t used = read_number("/sys/fs/cgroup/memory.current");
    if (limit < 0 || used < 0) {
        return machine;
    }
    const std::int64_t group = std::max<std::int64_t>(limit - used, 0);
    return machine < 0 ? group : std::min(machine, group);
}

}  // namespace megamoe
