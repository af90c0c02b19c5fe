#include "weights/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "weights/safetensors_writer.h"
#include "weights/synth_encode.h"
#include "weights/synth_tokenizer.h"
#include "weights/synth_values.h"
#include "weights/v4_schema.h"

namespace megamoe::weights {
namespace {

constexpr std::int64_t kBandRows = 128;  // rows made at a time: a row of FP8 blocks
constexpr double kMaxSigma = 4;

Result<Done> check_options(const SynthOptions& options) {
    const ModelGeometry& g = options.geometry;
    if (auto parsed = parse_model_geometry(to_config_json(g)); !parsed) {
        return Error(parsed.error());
    }
    if (g.hidden_size % 32 != 0 || g.expert_inter % 32 != 0) {
        return invalid(fmt::format("hidden_size {} and moe_intermediate_size {} must be multiples of 32, the FP4 group",
                                   g.hidden_size, g.expert_inter));
    }
    if (!(options.router_skew_sigma >= 0 && options.router_skew_sigma <= kMaxSigma)) {
        return invalid(fmt::format("router skew {} must be between 0 and {}", options.router_skew_sigma, kMaxSigma));
    }
    if (!(options.router_drift >= 0 && options.router_drift <= 1)) {
        return invalid(fmt::format("router drift {} must be between 0 and 1", options.router_drift));
    }
    if (options.max_shard_bytes < 1) {
        return invalid(fmt::format("shard size {} must be positive", options.max_shard_bytes));
    }
    return Done{};
}

// Makes the folder, and refuses one that already holds a checkpoint: leftovers would mix with the new files.
Result<Done> prepare_folder(const std::string& dir) {
    std::error_code error;
    std::filesystem::create_directories(dir, error);
    if (!error) {
        for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
            const std::string file = entry.path().filename().string();
            if (file == "config.json" || file.find(".safetensors") != file.npos) {
                return Error{Errc::kFailedPrecondition, fmt::format("{}: already holds {}", dir, file),
                             "choose a new folder, or empty this one"};
            }
        }
    }
    return error ? Result<Done>(invalid(fmt::format("{}: {}", dir, error.message()))) : Done{};
}

Result<Done> write_text(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    if (!file.flush()) {
        return Error{Errc::kResourceExhausted, fmt::format("{}: write failed: {}", path, std::strerror(errno)), {}};
    }
    return Done{};
}

std::vector<TensorSpec> all_tensors(const ModelGeometry& g) {
    std::vector<TensorSpec> specs = global_tensors(g);
    const auto add = [&](std::vector<TensorSpec> more) {
        std::move(more.begin(), more.end(), std::back_inserter(specs));
    };
    for (std::int32_t l = 0; l < g.num_layers; ++l) {
        add(layer_tensors(g, l));
        for (std::int32_t e = 0; e < g.num_experts; ++e) {
            add(expert_tensors(g, l, e));
        }
    }
    return specs;
}

std::vector<std::vector<TensorSpec>> split_into_shards(const ModelGeometry& g, std::int64_t max_bytes) {
    std::vector<std::vector<TensorSpec>> shards(1);
    std::int64_t bytes = 0;
    for (TensorSpec& spec : all_tensors(g)) {
        if (!shards.back().empty() && bytes + spec.num_bytes() > max_bytes) {
            shards.emplace_back();
            bytes = 0;
        }
        bytes += spec.num_bytes();
        shards.back().push_back(std::move(spec));
    }
    return shards;
}

std::int64_t element_bytes(Storage storage) {
    switch (storage) {
        case Storage::kI64:
            return 8;
        case Storage::kF32:
            return 4;
        case Storage::kBf16:
            return 2;
        default:
            return 1;
    }
}

// The tensors of a spec as they stand in the file, one after the other.
std::vector<TensorPlan> plan(const TensorSpec& spec) {
    switch (spec.storage) {
        case Storage::kFp4:
            return {{spec.name, Dtype::kI8, {spec.shape[0], spec.shape[1] / 2}},
                    {spec.scale_name(), Dtype::kF8E8m0, scale_shape(spec.storage, spec.shape)}};
        case Storage::kFp8:
            return {{spec.name, Dtype::kF8E4m3, spec.shape},
                    {spec.scale_name(), Dtype::kF8E8m0, scale_shape(spec.storage, spec.shape)}};
        case Storage::kBf16:
            return {{spec.name, Dtype::kBf16, spec.shape}};
        case Storage::kF32:
            return {{spec.name, Dtype::kF32, spec.shape}};
        default:
            return {{spec.name, Dtype::kI64, spec.shape}};
    }
}

Result<Done> write_table(const SynthValues& values, const TensorSpec& spec, SafetensorsWriter& writer) {
    std::vector<std::int64_t> experts(static_cast<std::size_t>(spec.shape[1]));
    for (std::int64_t token = 0; token < spec.shape[0]; ++token) {
        values.fill_table_row(spec, token, experts);
        MM_TRY_DONE(writer.append(std::as_bytes(std::span(experts))));
    }
    return Done{};
}

// Makes the tensor in bands of rows. The scales, few, wait until all codes are written.
Result<Done> write_floats(const SynthValues& values, const TensorSpec& spec, SafetensorsWriter& writer) {
    const std::int64_t cols = spec.shape.back();
    const std::int64_t num_rows = spec.num_elements() / cols;
    std::vector<float> band;
    std::vector<std::byte> codes;
    std::vector<std::byte> scales;
    for (std::int64_t first = 0; first < num_rows; first += kBandRows) {
        const std::int64_t count = std::min(kBandRows, num_rows - first);
        band.resize(static_cast<std::size_t>(count * cols));
        for (std::int64_t r = 0; r < count; ++r) {
            values.fill_row(
                spec, first + r,
                std::span(band).subspan(static_cast<std::size_t>(r * cols), static_cast<std::size_t>(cols)));
        }
        codes.clear();
        if (spec.storage == Storage::kFp4) {
            encode_fp4(band, cols, codes, scales);
        } else if (spec.storage == Storage::kFp8) {
            encode_fp8(band, cols, codes, scales);
        } else if (spec.storage == Storage::kBf16) {
            encode_bf16(band, codes);
        }
        MM_TRY_DONE(writer.append(spec.storage == Storage::kF32 ? std::as_bytes(std::span(band)) : std::span(codes)));
    }
    return writer.append(scales);
}

Result<Done> write_shard(const std::string& path, const SynthValues& values, std::vector<TensorSpec> specs) {
    // Wide elements first, so that every tensor lies aligned.
    std::stable_sort(specs.begin(), specs.end(), [](const TensorSpec& a, const TensorSpec& b) {
        return element_bytes(a.storage) > element_bytes(b.storage);
    });
    std::vector<TensorPlan> plans;
    for (const TensorSpec& spec : specs) {
        for (TensorPlan& p : plan(spec)) {
            plans.push_back(std::move(p));
        }
    }
    MM_TRY(auto writer, SafetensorsWriter::create(path, plans));
    for (const TensorSpec& spec : specs) {
        MM_TRY_DONE(spec.storage == Storage::kI64 ? write_table(values, spec, writer)
                                                  : write_floats(values, spec, writer));
    }
    return writer.finish();
}

Result<Done> write_shards(const SynthOptions& options, const std::string& dir) {
    const SynthValues values(options);
    const auto shards = split_into_shards(options.geometry, options.max_shard_bytes);
    if (shards.size() == 1) {
        return write_shard(dir + "/model.safetensors", values, shards[0]);
    }
    std::map<std::string, std::string> weight_map;
    std::int64_t total_bytes = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
        MM_TRY_DONE(write_shard(dir + "/" + file, values, shards[i]));
        for (const TensorSpec& spec : shards[i]) {
            total_bytes += spec.num_bytes();
            for (const TensorPlan& p : plan(spec)) {
                weight_map[p.name] = file;
            }
        }
    }
    const nlohmann::ordered_json index{{"metadata", {{"total_size", total_bytes}}}, {"weight_map", weight_map}};
    return write_text(dir + "/model.safetensors.index.json", index.dump(1) + "\n");
}

}  // namespace

Result<Done> write_synthetic_checkpoint(const SynthOptions& options, const std::string& dir) {
    MM_TRY_DONE(check_options(options));
    ModelGeometry g = options.geometry;
    g.num_mtp_layers = 0;  // their tensors are not made
    MM_TRY(const auto tokenizer, synth_tokenizer_json(g.vocab_size));
    MM_TRY_DONE(prepare_folder(dir));
    MM_TRY_DONE(write_shards(options, dir));
    MM_TRY_DONE(write_text(dir + "/tokenizer.json", tokenizer));
    const nlohmann::ordered_json generation{{"bos_token_id", g.bos_id},
                                            {"eos_token_id", g.eos_id},
                                            {"do_sample", true},
                                            {"temperature", 1.0},
                                            {"top_p", 1.0}};
    MM_TRY_DONE(write_text(dir + "/generation_config.json", generation.dump(2) + "\n"));
    return write_text(dir + "/config.json", to_config_json(g));
}

}  // namespace megamoe::weights
