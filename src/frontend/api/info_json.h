// The bodies of the routes that describe the server. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "frontend/api/model_info.h"
#include "frontend/router/rank_router.h"

namespace megamoe::api {

struct ServerStatus {
    std::string state;  // "ready", "starting", "draining", "failed"
    double uptime_seconds = 0;
    std::string_view load_balance_method;
    std::vector<engine::RankStats> ranks;  // empty before the engine is ready
    std::vector<router::RankLoad> loads;
};

// OpenAI's list of models, and one model of it. In  created  seconds since 1970
std::string model_list_json(const frontend::ModelInfo& model, std::int64_t created);
std::string model_json(const frontend::ModelInfo& model, std::int64_t created);
std::string model_info_json(const frontend::ModelInfo& model);
std::string server_info_json(const frontend::ModelInfo& model, const ServerStatus& status);
// [{"dp_rank":0,"num_reqs":...,"num_waiting_reqs":...,"num_tokens":...}]
std::string load_json(const ServerStatus& status);
std::string tokens_json(const std::vector<std::int32_t>& tokens, std::int32_t max_model_len);
// {"NAME": VALUE}
std::string text_json(std::string_view name, std::string_view value);
std::string number_json(std::string_view name, std::int64_t value);

}  // namespace megamoe::api
