// megamoe model: what is in a checkpoint, and making one.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "cli.h"
#include "config/model_geometry.h"
#include "lab/core/files.h"
#include "subcommands.h"
#include "weights/inspect.h"
#include "weights/synth.h"
#include "weights/v4_weights.h"

namespace megamoe::apps {
namespace {

int inspect_command(int argc, char** argv) {
    CLI::App app{"Prints what a checkpoint is: geometry, tensors, parameters, bytes by kind, cost of a token.",
                 "megamoe model inspect"};
    std::string dir;
    app.add_option("DIR", dir, "folder with config.json and the weights")->required();
    if (const auto code = parse_or_exit(app, argc, argv)) {
        return *code;
    }
    const auto weights = weights::load_v4(dir);
    if (!weights) {
        return fail("model inspect", weights.error());
    }
    fmt::print("{}", weights::describe_model(*weights.value()));
    return kExitDone;
}

// Sizes that replace those of the preset or file.
struct SizeOverrides {
    std::optional<std::int32_t> layers, hidden, experts, top_k, expert_inter, vocab;

    void apply(ModelGeometry& geometry) const {
        const auto replace = [](std::int32_t& size, const std::optional<std::int32_t>& other) {
            size = other.value_or(size);
        };
        replace(geometry.hidden_size, hidden);
        replace(geometry.num_experts, experts);
        replace(geometry.top_k, top_k);
        replace(geometry.expert_inter, expert_inter);
        replace(geometry.vocab_size, vocab);
        if (layers && *layers != geometry.num_layers) {
            // The pattern of compression ratios goes on from its start.
            const auto pattern = geometry.ratios;
            geometry.num_layers = *layers;
            geometry.ratios.resize(static_cast<std::size_t>(*layers));
            for (std::size_t i = 0; i < geometry.ratios.size(); ++i) {
                geometry.ratios[i] = pattern[i % pattern.size()];
            }
        }
    }
};

Result<ModelGeometry> base_geometry(const std::string& preset, const std::string& config) {
    if (config.empty()) {
        return weights::find_synth_preset(preset);
    }
    MM_TRY(const std::string text, lab::read_file(config));
    return parse_model_geometry(text);
}

std::string preset_list() {
    std::string text = "\nPresets:\n";
    for (const auto& preset : weights::synth_presets()) {
        text += fmt::format("  {:12} {}\n", preset.name, preset.summary);
    }
    return text;
}

int synth_command(int argc, char** argv) {
    CLI::App app{"Writes a random checkpoint in the released format, with a tokenizer, at any size.",
                 "megamoe model synth"};
    app.footer(preset_list());
    weights::SynthOptions options;
    SizeOverrides sizes;
    std::string preset = "tiny";
    std::string config;
    std::string out;
    app.add_option("--out", out, "folder to write; made if it does not exist")->required();
    auto* named = app.add_option("--preset", preset, "sizes by name")->capture_default_str();
    app.add_option("--config", config, "a config.json to take the sizes from")->excludes(named);
    app.add_option("--layers", sizes.layers, "instead of the preset's")->check(CLI::Range(1, 4096));
    app.add_option("--hidden-size", sizes.hidden, "instead of the preset's");
    app.add_option("--experts", sizes.experts, "instead of the preset's");
    app.add_option("--top-k", sizes.top_k, "instead of the preset's");
    app.add_option("--expert-inter", sizes.expert_inter, "width of an expert, instead of the preset's");
    app.add_option("--vocab-size", sizes.vocab, "instead of the preset's");
    app.add_option("--seed", options.seed, "one seed, the same bytes on every machine")->capture_default_str();
    app.add_option("--skew", options.router_skew_sigma, "sigma of the experts' log-normal popularity; 0 = all alike")
        ->capture_default_str();
    app.add_option("--drift", options.router_drift, "0 = every domain prefers the same experts, 1 = its own")
        ->capture_default_str();
    app.add_option("--max-shard-bytes", options.max_shard_bytes, "a file ends before it would grow past this")
        ->capture_default_str();
    if (const auto code = parse_or_exit(app, argc, argv)) {
        return *code;
    }
    auto geometry = base_geometry(preset, config);
    if (!geometry) {
        return fail("model synth", geometry.error());
    }
    options.geometry = std::move(geometry).take();
    sizes.apply(options.geometry);
    if (const auto written = weights::write_synthetic_checkpoint(options, out); !written) {
        return fail("model synth", written.error());
    }
    fmt::print("wrote {}\n`megamoe model inspect {}` shows what is in it\n", out, out);
    return kExitDone;
}

constexpr std::array kSubcommands{
    Subcommand{"inspect", "print geometry, tensors, parameters and bytes of a checkpoint", &inspect_command},
    Subcommand{"synth", "write a random checkpoint in the released format", &synth_command},
    Subcommand{"generate", "continue a prompt, without a server", &generate_command},
    Subcommand{"golden", "compare a model with its reference outputs", &golden_command},
};

}  // namespace

int model_command(int argc, char** argv) {
    return run_subcommand("megamoe model", "Inspect, synthesise, run or verify a checkpoint.", kSubcommands, argc,
                          argv);
}

}  // namespace megamoe::apps
