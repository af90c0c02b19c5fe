#include "lab/client/server_probe.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "lab/client/http_call.h"

namespace megamoe::lab {

Result<std::string> first_model(const Target& target) {
    MM_TRY(const HttpAnswer answer, call(target, {.endpoint = "/v1/models"}));
    const auto json = nlohmann::json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
    try {
        return json.at("data").at(0).at("id").get<std::string>();
    } catch (const nlohmann::json::exception&) {
        return Error{Errc::kUnavailable,
                     fmt::format("{}/v1/models lists no model (status {})", target.url(), answer.status),
                     "name it with --served-model-name"};
    }
}

std::optional<ServerCounters> parse_counters(const std::string& text) {
    std::optional<double> prompt;
    std::optional<double> generation;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::string_view name = std::string_view(line).substr(0, line.find_first_of("{ "));
        const std::size_t space = line.rfind(' ');
        if (line.starts_with('#') || space == std::string::npos) {
            continue;
        }
        const double value = std::strtod(line.c_str() + space, nullptr);
        if (name.ends_with("prompt_tokens_total")) {
            prompt = prompt.value_or(0) + value;
        } else if (name.ends_with("generation_tokens_total")) {
            generation = generation.value_or(0) + value;
        }
    }
    if (!prompt || !generation) {
        return std::nullopt;
    }
    return ServerCounters{.prompt_tokens = *prompt, .generation_tokens = *generation};
}

std::optional<ServerCounters> read_counters(const Target& target) {
    const auto answer = call(target, {.endpoint = "/metrics", .timeout_ms = 2000});
    return answer && answer.value().status == 200 ? parse_counters(answer.value().body) : std::nullopt;
}

Result<Done> flush_cache(const Target& target) {
    MM_TRY(const HttpAnswer answer, call(target, {.method = "POST", .endpoint = "/flush_cache"}));
    if (answer.status != 200) {
        return Error{
            Errc::kUnavailable,
            fmt::format("{}/flush_cache answered {}: {}", target.url(), answer.status, answer.body.substr(0, 200)),
            "the cache may still hold prompts of the warm-up; leave --flush-cache out if the server has none"};
    }
    return Done{};
}

std::string server_info(const Target& target) {
    const auto answer = call(target, {.endpoint = "/server_info", .timeout_ms = 2000});
    const bool usable = answer && answer.value().status == 200 && nlohmann::json::accept(answer.value().body);
    return usable ? answer.value().body : std::string();
}

}  // namespace megamoe::lab
