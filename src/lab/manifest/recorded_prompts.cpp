#include "lab/manifest/recorded_prompts.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "lab/core/files.h"
#include "lab/core/gzip.h"
#include "lab/manifest/token_pool.h"

namespace megamoe::lab {
namespace {

using Json = nlohmann::json;

constexpr std::uint32_t kDefaultOutput = 1024;

class Collector {
  public:
    Collector(const GenerateOptions& options, const TokenSource& tokens, bool counts_bos, std::size_t limit)
        : options_(options), tokens_(tokens), bos_(counts_bos ? 1 : 0), limit_(limit) {}

    bool full() const { return rows_.size() >= limit_; }
    std::vector<Row> take() { return std::move(rows_); }

    void add_conversation(const Json& record) {
        const auto turns = record.find("conversations");
        if (turns == record.end() || turns->size() < 2 || skipped()) {
            return;
        }
        Row row;
        row.text = turns->at(0).at("value").get<std::string>();
        const auto answer = tokens_.encode(turns->at(1).at("value").get<std::string>());
        row.out = options_.output_len.value_or(static_cast<std::uint32_t>(answer.size()));
        keep(std::move(row), answer.size());
    }

    void add_custom(const Json& record) {
        if (skipped()) {
            return;
        }
        if (record.contains("messages")) {
            throw std::invalid_argument("has \"messages\": apply the chat template first and give \"prompt\"");
        }
        Row row;
        row.text = record.value("prompt", "");
        row.ids = record.value("prompt_ids", std::vector<std::uint32_t>());
        if (row.text.empty() == row.ids.empty()) {
            throw std::invalid_argument("needs exactly one of \"prompt\" and \"prompt_ids\"");
        }
        row.out = options_.output_len.value_or(record.value("output_len", kDefaultOutput));
        row.at_us = static_cast<std::int64_t>(std::llround(record.value("at_ms", 0.0) * 1000));
        if (record.contains("session")) {
            row.sess = record["session"].is_string() ? record["session"].get<std::string>() : record["session"].dump();
            row.turn = record.value("turn", std::int64_t{0});
        }
        row.params = record.value("params", Json::object()).dump();
        keep(std::move(row), row.out);
    }

  private:
    bool skipped() { return seen_++ < options_.dataset_offset; }

    void keep(Row row, std::size_t answer_tokens) {
        if (row.ids.empty()) {
            row.ids = tokens_.encode(row.text);
            row.in = static_cast<std::uint32_t>(row.ids.size()) + bos_;
        } else {
            row.in = static_cast<std::uint32_t>(row.ids.size());
        }
        const bool long_enough =
            row.ids.size() >= options_.skip_min_tokens && answer_tokens >= options_.skip_min_tokens;
        const bool fits = options_.max_context == 0 || row.in + row.out <= options_.max_context;
        if (long_enough && fits && is_clean_utf8(row.text)) {
            rows_.push_back(std::move(row));
        }
    }

    const GenerateOptions& options_;
    const TokenSource& tokens_;
    std::uint32_t bos_;
    std::size_t limit_;
    std::int64_t seen_ = 0;
    std::vector<Row> rows_;
};

Result<Done> read_sharegpt(const std::string& path, Collector& rows) {
    MM_TRY(const std::string text, read_file(path));
    std::int64_t number = 0;
    try {
        for (const Json& record : Json::parse(text)) {
            if (rows.full()) {
                break;
            }
            ++number;
            rows.add_conversation(record);
        }
    } catch (const std::exception& error) {
        return invalid(fmt::format("{}: record {}: {}", path, number, error.what()),
                       "expected a JSON array of {\"conversations\": [{\"value\": ...}, ...]}");
    }
    return Done{};
}

Result<Done> read_custom(const std::string& path, Collector& rows) {
    MM_TRY(LineReader reader, LineReader::open(path));
    std::int64_t number = 0;
    try {
        while (!rows.full()) {
            MM_TRY(const std::optional<std::string> line, reader.next());
            if (!line) {
                break;
            }
            ++number;
            if (!line->empty()) {
                rows.add_custom(Json::parse(*line));
            }
        }
    } catch (const std::exception& error) {
        return invalid(fmt::format("{}: line {}: {}", path, number, error.what()),
                       "each line is a JSON object with prompt or prompt_ids");
    }
    return Done{};
}

}  // namespace

Result<std::vector<Row>> read_recorded_prompts(const GenerateOptions& options, const TokenSource& tokens,
                                               bool counts_bos, std::size_t limit) {
    Collector rows(options, tokens, counts_bos, limit);
    if (options.dataset == "sharegpt") {
        MM_TRY_DONE(read_sharegpt(options.dataset_path, rows));
    } else {
        MM_TRY_DONE(read_custom(options.dataset_path, rows));
    }
    return rows.take();
}

}  // namespace megamoe::lab
