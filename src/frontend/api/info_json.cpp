#include "frontend/api/info_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "frontend/api/presenter_json.h"

namespace megamoe::api {
namespace {

Json model_object(const frontend::ModelInfo& model, std::int64_t created) {
    return {{"id", model.served_name},
            {"object", "model"},
            {"created", created},
            {"owned_by", "megamoe"},
            {"root", model.model_path},
            {"parent", nullptr},
            {"max_model_len", model.context_length}};
}

Json rank_object(std::size_t rank, const engine::RankStats& stats, const router::RankLoad& load) {
    return {{"dp_rank", rank},
            {"num_running_reqs", stats.running},
            {"num_queue_reqs", stats.waiting},
            {"kv_available_pages", stats.free_pages},
            {"kv_total_pages", stats.total_pages},
            {"prompt_tokens", stats.prompt_tokens},
            {"generation_tokens", stats.generated_tokens},
            {"extend_steps", stats.extend_steps},
            {"decode_steps", stats.decode_steps},
            {"idle_steps", stats.idle_steps},
            {"retractions", stats.retractions},
            {"routed_requests", load.requests},
            {"routed_tokens", load.tokens}};
}

}  // namespace

std::string model_list_json(const frontend::ModelInfo& model, std::int64_t created) {
    return dump({{"object", "list"}, {"data", Json::array({model_object(model, created)})}});
}

std::string model_json(const frontend::ModelInfo& model, std::int64_t created) {
    return dump(model_object(model, created));
}

std::string model_info_json(const frontend::ModelInfo& model) {
    return dump({{"model_path", model.model_path},
                 {"tokenizer_path", model.model_path},
                 {"served_model_name", model.served_name},
                 {"is_generation", true},
                 {"context_length", model.context_length},
                 {"vocab_size", model.vocab_size}});
}

std::string server_info_json(const frontend::ModelInfo& model, const ServerStatus& status) {
    Json ranks = Json::array();
    for (std::size_t i = 0; i < status.ranks.size(); ++i) {
        ranks.push_back(
            rank_object(i, status.ranks[i], i < status.loads.size() ? status.loads[i] : router::RankLoad{}));
    }
    Json config = Json::parse(model.config_json, nullptr, /*allow_exceptions=*/false);
    return dump({{"model_path", model.model_path},
                 {"served_model_name", model.served_name},
                 {"context_length", model.context_length},
                 {"num_ranks", model.num_ranks},
                 {"status", status.state},
                 {"uptime_seconds", status.uptime_seconds},
                 {"load_balance_method", status.load_balance_method},
                 {"config", config.is_discarded() ? Json::object() : std::move(config)},
                 {"ranks", std::move(ranks)}});
}

std::string load_json(const ServerStatus& status) {
    Json list = Json::array();
    for (std::size_t i = 0; i < status.ranks.size(); ++i) {
        const engine::RankStats& rank = status.ranks[i];
        list.push_back({{"dp_rank", i},
                        {"num_reqs", rank.running + rank.waiting},
                        {"num_waiting_reqs", rank.waiting},
                        {"num_tokens", i < status.loads.size() ? status.loads[i].tokens : 0}});
    }
    return dump(list);
}

std::string tokens_json(const std::vector<std::int32_t>& tokens, std::int32_t max_model_len) {
    return dump({{"tokens", tokens}, {"count", tokens.size()}, {"max_model_len", max_model_len}});
}

std::string text_json(std::string_view name, std::string_view value) {
    Json object;
    object[std::string(name)] = value;
    return dump(object);
}

std::string number_json(std::string_view name, std::int64_t value) {
    Json object;
    object[std::string(name)] = value;
    return dump(object);
}

}  // namespace megamoe::api
