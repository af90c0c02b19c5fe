#include "lab/client/request_body.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/manifest/row_hash.h"

namespace megamoe::lab {
namespace {

using Json = nlohmann::ordered_json;

// Keys whose meaning the manifest fixes.
constexpr std::array<std::string_view, 9> kFixed{"prompt",     "messages",       "text",
                                                 "input_ids",  "stream",         "max_tokens",
                                                 "min_tokens", "max_new_tokens", "sampling_params"};

bool sends_ids(const Row& row, PromptFormat format) {
    return format == PromptFormat::kIds || row.text.empty();
}

Json openai_body(const Row& row, const BodyOptions& options) {
    Json body = {{"model", options.model}};
    if (options.backend == Backend::kOpenaiChat) {
        body["messages"] = {{{"role", "user"}, {"content", row.text}}};
    } else if (sends_ids(row, options.format)) {
        body["prompt"] = row.ids;
    } else {
        body["prompt"] = row.text;
    }
    body["max_tokens"] = row.out;
    body["temperature"] = options.sampling.temperature;
    body["top_p"] = options.sampling.top_p;
    body["top_k"] = options.sampling.top_k;
    body["ignore_eos"] = options.sampling.ignore_eos;
    if (options.min_tokens && options.sampling.ignore_eos) {
        body["min_tokens"] = row.out;
    }
    body["stream"] = options.stream;
    if (options.stream && options.usage != StreamUsage::kOff) {
        body["stream_options"] = {{"include_usage", true}};
        if (options.usage == StreamUsage::kContinuous) {
            body["stream_options"]["continuous_usage_stats"] = true;
        }
    }
    return body;
}

Json sglang_body(const Row& row, const BodyOptions& options) {
    Json body;
    if (sends_ids(row, options.format)) {
        body["input_ids"] = row.ids;
    } else {
        body["text"] = row.text;
    }
    body["sampling_params"] = {{"max_new_tokens", row.out},
                               {"temperature", options.sampling.temperature},
                               {"top_p", options.sampling.top_p},
                               {"top_k", options.sampling.top_k},
                               {"ignore_eos", options.sampling.ignore_eos}};
    if (options.min_tokens && options.sampling.ignore_eos) {
        body["sampling_params"]["min_new_tokens"] = row.out;
    }
    body["stream"] = options.stream;
    return body;
}

Result<Done> merge(const std::string& extra_json, std::string_view from, Json& body) {
    const Json extra = Json::parse(extra_json, nullptr, /*allow_exceptions=*/false);
    if (!extra.is_object()) {
        return invalid(std::string(from) + " is not a JSON object: " + extra_json);
    }
    for (const auto& [key, value] : extra.items()) {
        for (const std::string_view fixed : kFixed) {
            if (key == fixed) {
                return invalid(std::string(from) + " may not set \"" + key + "\"",
                               "prompts and lengths come from the manifest alone");
            }
        }
        body[key] = value;
    }
    return Done{};
}

}  // namespace

Result<std::string> build_body(const Row& row, const BodyOptions& options) {
    if (options.backend == Backend::kOpenaiChat && (row.text.empty() || options.format == PromptFormat::kIds)) {
        return invalid("row " + row.id + " is a list of token ids, which the chat API does not take",
                       "use --backend openai, or a manifest with --prompt-format text");
    }
    Json body = options.backend == Backend::kSglang ? sglang_body(row, options) : openai_body(row, options);
    MM_TRY_DONE(merge(row.params, "row " + row.id + ": params", body));
    MM_TRY_DONE(merge(options.extra_json, "--extra-body", body));
    try {
        return body.dump();
    } catch (const Json::exception& error) {
        return invalid("row " + row.id + ": " + error.what(), "prompts must be UTF-8");
    }
}

Result<Digest> digest_of_body(const std::string& id, const std::string& body, Backend backend) {
    try {
        const Json json = Json::parse(body);
        const bool sglang = backend == Backend::kSglang;
        const Json& sampling = sglang ? json.at("sampling_params") : json;
        const Json& prompt = backend == Backend::kOpenaiChat ? json.at("messages").at(0).at("content")
                             : !sglang                       ? json.at("prompt")
                             : json.contains("text")         ? json.at("text")
                                                             : json.at("input_ids");
        std::string text;
        std::vector<std::uint32_t> ids;
        if (prompt.is_string()) {
            text = prompt.get<std::string>();
        } else {
            ids = prompt.get<std::vector<std::uint32_t>>();
        }
        return sent_digest({.id = id,
                            .text = text,
                            .ids = ids,
                            .max_tokens = sampling.at(sglang ? "max_new_tokens" : "max_tokens").get<std::uint32_t>(),
                            .temperature = sampling.at("temperature").get<double>(),
                            .top_p = sampling.at("top_p").get<double>(),
                            .top_k = sampling.at("top_k").get<std::int32_t>(),
                            .ignore_eos = sampling.at("ignore_eos").get<bool>()});
    } catch (const Json::exception& error) {
        return invalid("request " + id + ": " + error.what());
    }
}

Digest expected_digest(const Row& row, const BodyOptions& options) {
    const bool ids = sends_ids(row, options.format);
    return sent_digest({.id = row.id,
                        .text = ids ? std::string_view() : std::string_view(row.text),
                        .ids = ids ? std::span<const std::uint32_t>(row.ids) : std::span<const std::uint32_t>(),
                        .max_tokens = row.out,
                        .temperature = options.sampling.temperature,
                        .top_p = options.sampling.top_p,
                        .top_k = options.sampling.top_k,
                        .ignore_eos = options.sampling.ignore_eos});
}

}  // namespace megamoe::lab
