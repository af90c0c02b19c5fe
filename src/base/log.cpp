#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"

namespace megamoe {
namespace log {
namespace {

thread_local std::int32_t rank_of_thread = -1;
thread_local std::int64_t step_of_thread = -1;
bool json_lines = false;

spdlog::logger& sink() {
    static const auto logger = [] {
        auto made = spdlog::stderr_logger_mt("megamoe");
        made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
        return made;
    }();
    return *logger;
}

std::string prefix() {
    if (rank_of_thread < 0) {
        return {};
    }
    std::string out = "r" + std::to_string(rank_of_thread) + " ";
    if (step_of_thread >= 0) {
        out += "s" + std::to_string(step_of_thread) + " ";
    }
    return out;
}

}  // namespace

void set_level(Level level) {
    constexpr spdlog::level::level_enum kMap[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                  spdlog::level::err};
    sink().set_level(kMap[static_cast<int>(level)]);
}

void set_json(bool on) {
    json_lines = on;
    sink().set_pattern(on ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e","level":"%l",%v})" : "%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
}

void set_rank(std::int32_t rank) {
    rank_of_thread = rank;
}

void set_step(std::int64_t step) {
    step_of_thread = step;
}

void write(Level level, std::string_view text) {
    constexpr spdlog::level::level_enum kMap[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                  spdlog::level::err};
    const auto at = kMap[static_cast<int>(level)];
    if (json_lines) {
        sink().log(at, "\"rank\":{},\"step\":{},\"text\":{}", rank_of_thread, step_of_thread,
                   nlohmann::json(text).dump());
    } else {
        sink().log(at, "{}{}", prefix(), text);
    }
}

}  // namespace log

void fail_check(const char* file, int line, const char* condition, const std::string& values) {
    log::error(std::string("check failed: ") + condition + values + " at " + file + ":" + std::to_string(line));
    std::abort();
}

}  // namespace megamoe
