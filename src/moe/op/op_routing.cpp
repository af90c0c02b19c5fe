#include "moe/op/op_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/check.h"
#include "base/nearest.h"
#include "weights/synth_random.h"

namespace megamoe::moe::op {
namespace {

using weights::SynthRandom;

constexpr float kWeightSum = 1.5F;  // routed_scaling_factor of the Flash model
constexpr std::int32_t kNone = -1;

Error no_such_routing(const std::string& text) {
    const std::vector<std::string> known{"uniform",    "one-expert",       "one-rank",
                                         "log-normal", "log-normal:SIGMA", "file:PATH"};
    const std::string near = nearest(text, known);
    return invalid(
        fmt::format("there is no routing `{}`", text),
        near.empty() ? fmt::format("use one of {}", fmt::join(known, ", ")) : fmt::format("did you mean `{}`?", near));
}

// The `count` largest keys of experts [0, pool): log popularity plus Gumbel noise draws them without replacement, each
// in proportion to its popularity among those left.
void draw_distinct(const SynthRandom& noise, const std::vector<double>& log_popularity, std::int64_t row,
                   std::int32_t count, std::int32_t* ids) {
    const auto pool = static_cast<std::int64_t>(log_popularity.size());
    std::vector<double> key(log_popularity);
    for (std::int64_t e = 0; e < pool; ++e) {
        const double u = noise.uniform(row * pool + e) + 0x1p-54;
        key[static_cast<std::size_t>(e)] -= weights::portable_log(-weights::portable_log(u));
    }
    std::vector<std::int32_t> order(key.size());
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](std::int32_t a, std::int32_t b) {
        return key[static_cast<std::size_t>(a)] > key[static_cast<std::size_t>(b)];
    });
    std::copy_n(order.begin(), count, ids);
}

// The experts a row may go to, as logarithms of their popularity.
std::vector<double> popularity(const Routing& routing, const Geometry& g, std::int32_t num_ranks, std::uint64_t seed) {
    const std::int32_t pool = routing.kind == RoutingKind::kOneRank ? g.num_experts / num_ranks : g.num_experts;
    std::vector<double> logs(static_cast<std::size_t>(pool), 0.0);
    if (routing.kind == RoutingKind::kLogNormal) {
        const SynthRandom random(seed, "popularity");
        for (std::size_t e = 0; e < logs.size(); ++e) {
            logs[e] = routing.sigma * random.normal(static_cast<std::int64_t>(e));
        }
    }
    return logs;
}

void fill_weights(std::int64_t rows, std::int32_t top_k, std::uint64_t seed, std::vector<float>& weight) {
    const SynthRandom random(seed, "weights");
    weight.resize(static_cast<std::size_t>(rows * top_k));
    for (std::int64_t row = 0; row < rows; ++row) {
        float* w = weight.data() + row * top_k;
        for (std::int32_t k = 0; k < top_k; ++k) {
            w[k] = 0.1F + static_cast<float>(random.uniform(row * top_k + k));
        }
        const float scale = kWeightSum / std::accumulate(w, w + top_k, 0.0F);
        std::for_each(w, w + top_k, [&](float& v) { v *= scale; });
    }
}

Result<Done> append_line(const std::string& line, std::int64_t number, const Geometry& g,
                         std::vector<std::int32_t>& ids) {
    const auto refuse = [&](const std::string& why) {
        return invalid(
            fmt::format("line {}: {}", number, why),
            fmt::format("a line holds {} expert ids from 0 to {}, or -1: [3, 1, ...]", g.top_k, g.num_experts - 1));
    };
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_array()) {
        return refuse("not a JSON list");
    }
    if (row.size() != static_cast<std::size_t>(g.top_k)) {
        return refuse(fmt::format("{} ids", row.size()));
    }
    for (const auto& id : row) {
        if (!id.is_number_integer() || id.get<std::int64_t>() < kNone || id.get<std::int64_t>() >= g.num_experts) {
            return refuse(fmt::format("{} is not the id of an expert", id.dump()));
        }
        ids.push_back(id.get<std::int32_t>());
    }
    return Done{};
}

}  // namespace

Result<Routing> parse_routing(const std::string& text) {
    Routing routing;
    routing.text = text;
    const std::size_t colon = text.find(':');
    const std::string word = text.substr(0, colon);
    const std::string value = colon == std::string::npos ? "" : text.substr(colon + 1);
    if (word == "file" && !value.empty()) {
        routing.kind = RoutingKind::kRecorded;
        routing.file = value;
        return routing;
    }
    if (word == "log-normal") {
        routing.kind = RoutingKind::kLogNormal;
        if (colon != std::string::npos) {
            const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), routing.sigma);
            if (error != std::errc{} || end != value.data() + value.size() ||
                !(routing.sigma >= 0 && routing.sigma <= 10)) {
                return invalid(fmt::format("routing `{}`: sigma is not a number from 0 to 10", text),
                               "write it as log-normal:1.5");
            }
        }
        return routing;
    }
    if (text == "uniform") {
        return routing;
    }
    if (text == "one-expert") {
        routing.kind = RoutingKind::kOneExpert;
        return routing;
    }
    if (text == "one-rank") {
        routing.kind = RoutingKind::kOneRank;
        return routing;
    }
    return no_such_routing(text);
}

Result<std::vector<std::int32_t>> parse_recorded(std::string_view text, const Geometry& geometry) {
    std::vector<std::int32_t> ids;
    std::int64_t number = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string line(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        ++number;
        if (line.find_first_not_of(" \t\r") != std::string::npos) {
            MM_TRY_DONE(append_line(line, number, geometry, ids));
        }
    }
    if (ids.empty()) {
        return invalid("the recorded routing holds no line");
    }
    return ids;
}

Routes make_routes(const Routing& routing, const Geometry& g, std::int32_t num_ranks, std::int64_t rows,
                   std::uint64_t seed) {
    const SynthRandom noise(seed, "choices");
    const std::vector<double> logs = popularity(routing, g, num_ranks, seed);
    const auto count =
        static_cast<std::int32_t>(std::min(std::int64_t{g.top_k}, static_cast<std::int64_t>(logs.size())));
    MM_CHECK(routing.kind != RoutingKind::kRecorded || !routing.recorded.empty(), "file", routing.file, "not read");
    Routes routes;
    routes.expert_id.assign(static_cast<std::size_t>(rows * g.top_k), kNone);
    for (std::int64_t row = 0; row < rows; ++row) {
        std::int32_t* ids = routes.expert_id.data() + row * g.top_k;
        if (routing.kind == RoutingKind::kOneExpert) {
            ids[0] = 0;
        } else if (routing.kind == RoutingKind::kRecorded) {
            const auto lines = static_cast<std::int64_t>(routing.recorded.size()) / g.top_k;
            std::copy_n(routing.recorded.begin() + row % lines * g.top_k, g.top_k, ids);
        } else {
            draw_distinct(noise, logs, row, count, ids);
        }
    }
    fill_weights(rows, g.top_k, seed, routes.weight);
    return routes;
}

}  // namespace megamoe::moe::op
