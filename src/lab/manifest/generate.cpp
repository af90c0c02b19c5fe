#include "lab/manifest/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/workers.h"
#include "lab/core/rng.h"
#include "lab/manifest/prompt_draw.h"
#include "lab/manifest/recorded_prompts.h"

namespace megamoe::lab {
namespace {

constexpr std::uint32_t kDefaultOutput = 1024;
constexpr std::uint32_t kCanaryTokens = 16;

// Each role draws from its own range of indices, so that more warm-up rows do not move the measured ones.
std::uint64_t stream_index(const Row& row) {
    return static_cast<std::uint64_t>(row.i) + (static_cast<std::uint64_t>(row.role) << 32);
}

void name_row(Row& row, Role role, std::int64_t i) {
    row.role = role;
    row.i = i;
    row.id = fmt::format("{}-{:06}", to_string(role)[0], i);
}

std::uint32_t draw_length(const GenerateOptions& options, std::string_view purpose, std::uint64_t index,
                          std::uint32_t length) {
    const LengthRange range = length_range(length, options.range_ratio, options.range_mode);
    Rng rng = Rng::stream(options.seed, purpose, index);
    return range.low + static_cast<std::uint32_t>(rng.below(std::uint64_t{range.high} - range.low + 1));
}

bool counts_bos(const GenerateOptions& options, const TokenSource& tokens) {
    const bool wanted = options.bos_policy == BosPolicy::kFromTokenizer ? tokens.identity().adds_bos
                                                                        : options.bos_policy == BosPolicy::kCounted;
    return wanted && options.prompt_format == PromptFormat::kText;  // nobody adds a BOS to a list of ids
}

// A row that samples gets its own seed: a random answer, but the same one in every arm.
void add_sampling_seed(const GenerateOptions& options, Row& row) {
    if (options.sampling.temperature > 0 && row.params == "{}") {
        const std::uint64_t seed = Rng::stream(options.seed, "sampling", stream_index(row)).below(1ULL << 31);
        row.params = fmt::format("{{\"seed\":{}}}", seed);
    }
}

std::vector<Row> blank_rows(const GenerateOptions& options) {
    std::vector<Row> rows;
    const auto add = [&](Role role, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            name_row(rows.emplace_back(), role, i);
        }
    };
    add(Role::kCanary, 1);
    add(Role::kWarmup, options.warmup_requests);
    add(Role::kMeasure, options.num_prompts);
    return rows;
}

Result<Done> fill_row(const GenerateOptions& options, const PromptDraw& prompts, bool bos, Row& row) {
    const std::uint64_t index = stream_index(row);
    const bool canary = row.role == Role::kCanary;
    const std::uint32_t input = canary ? kCanaryTokens : options.input_len;
    const std::uint32_t body = canary ? input : draw_length(options, "len_in", index, input);
    row.in = (canary ? 0 : options.prefix_len) + std::max<std::uint32_t>(body, 2);
    row.out = canary ? 1 : draw_length(options, "len_out", index, options.output_len.value_or(kDefaultOutput));
    MM_TRY(ExactText prompt, prompts.draw(index, row.in - (bos ? 1 : 0)));
    row.text = std::move(prompt.text);
    row.ids = std::move(prompt.ids);
    add_sampling_seed(options, row);
    return Done{};
}

Result<std::vector<Row>> synthetic_rows(const GenerateOptions& options, const TokenSource& tokens, bool bos) {
    MM_TRY(const std::unique_ptr<PromptDraw> prompts, make_prompt_draw(options, tokens));
    std::vector<Row> rows = blank_rows(options);
    std::mutex failure_mutex;
    std::optional<Error> failure;
    Workers workers(static_cast<std::int32_t>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U)));
    workers.run(static_cast<std::int64_t>(rows.size()), [&](std::int64_t k) {
        const auto done = fill_row(options, *prompts, bos, rows[static_cast<std::size_t>(k)]);
        if (!done) {
            const std::lock_guard lock(failure_mutex);
            failure = done.error();
        }
    });
    if (failure) {
        return *failure;
    }
    return rows;
}

Result<std::vector<Row>> recorded_rows(const GenerateOptions& options, const TokenSource& tokens, bool bos) {
    const auto wanted = static_cast<std::size_t>(1 + options.warmup_requests + options.num_prompts);
    MM_TRY(std::vector<Row> rows, read_recorded_prompts(options, tokens, bos, wanted));
    if (rows.size() < wanted) {
        return invalid(
            fmt::format("{} has {} usable records, {} are needed ({} measured, {} warm-up, 1 canary)",
                        options.dataset_path, rows.size(), wanted, options.num_prompts, options.warmup_requests),
            "lower --num-prompts or --warmup-requests, or give a larger file");
    }
    // The file's first records are the measured ones, so that a user who counts lines finds them.
    std::vector<Row> ordered;
    const auto move_in = [&](Role role, std::size_t from, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
            Row& row = ordered.emplace_back(std::move(rows[from + static_cast<std::size_t>(i)]));
            name_row(row, role, i);
            add_sampling_seed(options, row);
        }
    };
    const auto measured = static_cast<std::size_t>(options.num_prompts);
    move_in(Role::kCanary, wanted - 1, 1);
    move_in(Role::kWarmup, measured, options.warmup_requests);
    move_in(Role::kMeasure, 0, options.num_prompts);
    ordered.front().out = 1;
    return ordered;
}

}  // namespace

Result<Manifest> generate_manifest(const GenerateOptions& options, const TokenSource& tokens) {
    MM_TRY_DONE(check(options));
    const bool bos = counts_bos(options, tokens);
    const bool recorded = options.dataset == "sharegpt" || options.dataset == "custom";
    MM_TRY(std::vector<Row> rows,
           recorded ? recorded_rows(options, tokens, bos) : synthetic_rows(options, tokens, bos));
    Manifest manifest;
    manifest.origin = {.name = options.dataset,
                       .created_by = "megamoe bench",
                       .generator = options.dataset,
                       .args_json = to_json(options),
                       .seed = options.seed,
                       .tokenizer = tokens.identity().name,
                       .tokenizer_sha256 = tokens.identity().files_sha256,
                       .vocab = tokens.identity().vocab,
                       .bos_policy = bos ? "counted" : "none"};
    manifest.format = options.prompt_format;
    manifest.sampling = options.sampling;
    manifest.rows = std::move(rows);
    return manifest;
}

}  // namespace megamoe::lab
