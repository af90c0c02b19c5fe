#include "lab/report/environment.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "lab/core/files.h"
#include "lab/core/sha256.h"

extern char** environ;

namespace megamoe::lab {
namespace {

using Json = nlohmann::ordered_json;

bool is_secret(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    for (const std::string_view word : {"key", "token", "secret", "password", "credential", "auth"}) {
        if (name.find(word) != std::string::npos) {
            return true;
        }
    }
    return false;
}

// Variables that change how programs of this kind behave; the rest of an environment is private and noise.
bool is_relevant(std::string_view name) {
    for (const std::string_view prefix : {"MM_", "MEGAMOE_", "OMP_", "OMPI_", "NCCL_", "CUDA_", "HIP_", "ROC",
                                          "SGLANG_", "VLLM_", "MORI_", "MKL_", "LD_", "MALLOC_"}) {
        if (name.starts_with(prefix)) {
            return true;
        }
    }
    return false;
}

Json variables() {
    Json json = Json::object();
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text = *entry;
        const std::size_t equals = text.find('=');
        const std::string name = text.substr(0, equals);
        if (equals != std::string::npos && is_relevant(name)) {
            json[name] = is_secret(name) ? "set" : text.substr(equals + 1);
        }
    }
    return json;
}

// The value of the first "key : value" line.
std::string field_of(const std::string& file, std::string_view key) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(':');
        if (line.starts_with(key) && colon != std::string::npos) {
            const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
            return begin == std::string::npos ? std::string() : line.substr(begin);
        }
    }
    return {};
}

std::string first_line(const std::string& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

}  // namespace

std::string environment_json(const std::string& command) {
    utsname system{};
    uname(&system);
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    const auto binary = sha256_of_file("/proc/self/exe");
    const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
    const Json json = {
        {"process",
         {{"command", command},
          {"binary_sha256", binary ? Json(binary.value()) : Json(nullptr)},
          {"open_files_limit", files.rlim_cur},
          {"environment", variables()}}},
        {"host",
         {{"name_hash", sha256_hex(system.nodename).substr(0, 8)},
          {"cpu", or_null(field_of("/proc/cpuinfo", "model name"))},
          {"cores", std::thread::hardware_concurrency()},
          {"memory", or_null(field_of("/proc/meminfo", "MemTotal"))},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"machine", system.machine},
          {"boot_id", or_null(first_line("/proc/sys/kernel/random/boot_id"))},
          {"clock_source", or_null(first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"))},
          {"load_average", or_null(first_line("/proc/loadavg"))}}}};
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string machine_in_words() {
    utsname system{};
    uname(&system);
    const std::string cpu = field_of("/proc/cpuinfo", "model name");
    return fmt::format("{}, {} cores, {} {}", cpu.empty() ? system.machine : cpu, std::thread::hardware_concurrency(),
                       system.sysname, system.release);
}

}  // namespace megamoe::lab
