#include "lab/manifest/manifest_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "lab/core/gzip.h"
#include "lab/manifest/row_hash.h"

namespace megamoe::lab {
namespace {

using Json = nlohmann::ordered_json;

Json token_totals(const Manifest& manifest) {
    std::uint32_t in_min = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t out_min = in_min;
    std::uint32_t in_max = 0;
    std::uint32_t out_max = 0;
    std::uint64_t in_sum = 0;
    std::uint64_t out_sum = 0;
    for (const Row& row : manifest.rows) {
        if (row.role == Role::kMeasure) {
            in_min = std::min(in_min, row.in);
            in_max = std::max(in_max, row.in);
            in_sum += row.in;
            out_min = std::min(out_min, row.out);
            out_max = std::max(out_max, row.out);
            out_sum += row.out;
        }
    }
    if (in_sum == 0) {
        return Json::object();
    }
    return {{"in_min", in_min},   {"in_max", in_max},   {"in_sum", in_sum},
            {"out_min", out_min}, {"out_max", out_max}, {"out_sum", out_sum}};
}

Json header_json(const Manifest& manifest) {
    const Origin& origin = manifest.origin;
    const RowCounts counts = count_rows(manifest);
    return {{"manifest", 1},
            {"name", origin.name},
            {"created_by", origin.created_by},
            {"seed", origin.seed},
            {"generator", {{"name", origin.generator}, {"args", Json::parse(origin.args_json)}}},
            {"tokenizer",
             {{"name", origin.tokenizer},
              {"files_sha256", origin.tokenizer_sha256},
              {"vocab", origin.vocab},
              {"bos_policy", origin.bos_policy}}},
            {"prompt_format", to_string(manifest.format)},
            {"order", "as_listed"},
            {"counts", {{"canary", counts.canary}, {"warmup", counts.warmup}, {"measure", counts.measure}}},
            {"tokens", token_totals(manifest)},
            {"sampling",
             {{"temperature", manifest.sampling.temperature},
              {"top_p", manifest.sampling.top_p},
              {"top_k", manifest.sampling.top_k},
              {"ignore_eos", manifest.sampling.ignore_eos}}},
            {"content_sha256", manifest.content_sha256},
            {"prompts_sha256", manifest.prompts_sha256},
            {"rows_sha256_algo", "v1"}};
}

Json row_json(const Row& row) {
    Json json = {{"i", row.i}, {"id", row.id}, {"role", to_string(row.role)}};
    if (!row.text.empty()) {
        json["text"] = row.text;
    }
    if (!row.ids.empty()) {
        json["ids"] = row.ids;
    }
    json["in"] = row.in;
    json["out"] = row.out;
    if (row.at_us != 0) {
        json["at_us"] = row.at_us;
    }
    if (row.sess) {
        json["sess"] = *row.sess;
    }
    if (row.turn) {
        json["turn"] = *row.turn;
    }
    if (row.gap_us) {
        json["gap_us"] = *row.gap_us;
    }
    if (row.params != "{}") {
        json["params"] = Json::parse(row.params);
    }
    json["sha"] = to_hex(row_digest(row));
    return json;
}

Role role_of(const std::string& name) {
    for (const Role role : {Role::kCanary, Role::kWarmup, Role::kMeasure}) {
        if (name == to_string(role)) {
            return role;
        }
    }
    throw std::invalid_argument("role '" + name + "' is none of canary, warmup, measure");
}

template <class T>
std::optional<T> optional_field(const nlohmann::json& json, const char* key) {
    const auto found = json.find(key);
    return found == json.end() || found->is_null() ? std::optional<T>() : found->template get<T>();
}

Row row_of(const nlohmann::json& json) {
    Row row;
    row.i = json.at("i");
    row.id = json.at("id");
    row.role = role_of(json.at("role"));
    row.text = json.value("text", "");
    row.ids = json.value("ids", std::vector<std::uint32_t>());
    row.in = json.at("in");
    row.out = json.at("out");
    row.at_us = json.value("at_us", std::int64_t{0});
    row.sess = optional_field<std::string>(json, "sess");
    row.turn = optional_field<std::int64_t>(json, "turn");
    row.gap_us = optional_field<std::int64_t>(json, "gap_us");
    row.params = json.value("params", nlohmann::json::object()).dump();
    return row;
}

void read_header(const nlohmann::json& json, Manifest& manifest) {
    if (json.value("manifest", 0) != 1) {
        throw std::invalid_argument("the first line is no header of a version 1 manifest");
    }
    Origin& origin = manifest.origin;
    origin.name = json.at("name");
    origin.created_by = json.at("created_by");
    origin.seed = json.at("seed");
    origin.generator = json.at("generator").at("name");
    origin.args_json = json.at("generator").at("args").dump();
    const auto& tokenizer = json.at("tokenizer");
    origin.tokenizer = tokenizer.at("name");
    origin.tokenizer_sha256 = tokenizer.at("files_sha256");
    origin.vocab = tokenizer.at("vocab");
    origin.bos_policy = tokenizer.at("bos_policy");
    manifest.format = json.at("prompt_format") == "ids" ? PromptFormat::kIds : PromptFormat::kText;
    const auto& sampling = json.at("sampling");
    manifest.sampling = {.temperature = sampling.at("temperature"),
                         .top_p = sampling.at("top_p"),
                         .top_k = sampling.at("top_k"),
                         .ignore_eos = sampling.at("ignore_eos")};
    manifest.content_sha256 = json.at("content_sha256");
    manifest.prompts_sha256 = json.value("prompts_sha256", "");
}

Error damaged(const std::string& path, const std::string& reason) {
    return Error{Errc::kFailedPrecondition, path + ": " + reason,
                 "the file was changed or damaged: copy it again, or make a new one and rerun every arm with it"};
}

Result<Done> check_hashes(const Manifest& manifest, const std::string& path) {
    const std::string content = content_sha256(manifest.rows);
    if (content != manifest.content_sha256) {
        return damaged(path, "content hash is " + content + ", the header says " + manifest.content_sha256 +
                                 "; rows were added, removed or moved");
    }
    const std::string prompts = prompts_sha256(manifest.rows);
    if (!manifest.prompts_sha256.empty() && prompts != manifest.prompts_sha256) {
        return damaged(path, "prompts hash is " + prompts + ", the header says " + manifest.prompts_sha256);
    }
    return Done{};
}

}  // namespace

Result<Done> write_manifest(Manifest& manifest, const std::string& path) {
    manifest.content_sha256 = content_sha256(manifest.rows);
    manifest.prompts_sha256 = prompts_sha256(manifest.rows);
    const std::string part = path + ".part";
    MM_TRY(GzipWriter writer, GzipWriter::create(part));
    try {
        writer.add_line(header_json(manifest).dump());
        for (const Row& row : manifest.rows) {
            writer.add_line(row_json(row).dump());
        }
    } catch (const nlohmann::json::exception& error) {
        std::remove(part.c_str());
        return invalid("cannot write manifest " + path + ": " + error.what(), "prompts must be UTF-8");
    }
    MM_TRY_DONE(writer.finish());
    if (std::rename(part.c_str(), path.c_str()) != 0) {
        return invalid("cannot rename " + part + " to " + path, "check the folder's permissions");
    }
    return Done{};
}

Result<Manifest> read_manifest(const std::string& path) {
    MM_TRY(LineReader reader, LineReader::open(path));
    Manifest manifest;
    std::unordered_set<std::string> seen;
    std::int64_t line_number = 0;
    try {
        for (;;) {
            auto line = reader.next();
            if (!line) {
                return damaged(path, line.error().what);
            }
            if (!line.value()) {
                break;
            }
            const auto json = nlohmann::json::parse(*line.value());
            if (++line_number == 1) {
                read_header(json, manifest);
                continue;
            }
            Row row = row_of(json);
            if (const std::string sha = to_hex(row_digest(row)); sha != json.value("sha", sha)) {
                return damaged(path,
                               fmt::format("row {} (line {}) does not have the hash it carries", row.id, line_number));
            }
            if (!seen.insert(row.id).second) {
                return damaged(path, fmt::format("row id {} stands twice (line {})", row.id, line_number));
            }
            manifest.rows.push_back(std::move(row));
        }
    } catch (const std::exception& error) {
        return damaged(path, fmt::format("line {}: {}", line_number + 1, error.what()));
    }
    if (line_number == 0) {
        return damaged(path, "empty file");
    }
    MM_TRY_DONE(check_hashes(manifest, path));
    return manifest;
}

}  // namespace megamoe::lab
