#include "config/model_geometry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace megamoe {
namespace {

using nlohmann::json;

constexpr std::int32_t kMaxSize =
    1 << 24;  // of one dimension; keeps every product of two within int64, checked where int32
constexpr std::int32_t kMaxExperts = std::numeric_limits<std::int16_t>::max();  // expert ids of hash layers are int16
constexpr std::int32_t kMaxLayers = 4096;
constexpr std::int32_t kMaxStreams = 16;
constexpr double kMaxReal = 1e30;  // fits a float

constexpr std::string_view kWindowType = "sliding_attention";
constexpr std::string_view kCsaType = "compressed_sparse_attention";
constexpr std::string_view kHcaType = "heavily_compressed_attention";

// Reads the fields of one JSON object and collects what is wrong, so that a user sees all of it at once.
class FieldReader {
  public:
    FieldReader(const json& object, std::string path, std::vector<std::string>& problems)
        : object_(object), path_(std::move(path)), problems_(problems) {}

    // Null where the field is absent or null.
    const json* find(std::string_view name) const {
        const auto it = object_.find(name);
        return it == object_.end() || it->is_null() ? nullptr : &*it;
    }

    std::int32_t integer(std::string_view name, std::int64_t low, std::int64_t high) {
        const json* field = require(name);
        return field == nullptr ? 0 : as_integer(*field, label(name), low, high).value_or(0);
    }

    std::int32_t integer_or(std::string_view name, std::int32_t fallback, std::int64_t low, std::int64_t high) {
        const json* field = find(name);
        return field == nullptr ? fallback : as_integer(*field, label(name), low, high).value_or(fallback);
    }

    // A number above `low`, or equal to it if `closed`.
    double real(std::string_view name, double low, bool closed = false) {
        const json* field = require(name);
        if (field == nullptr) {
            return 0;
        }
        if (!field->is_number()) {
            add("{} must be a number, not {}", label(name), field->dump());
            return 0;
        }
        const auto value = field->get<double>();
        if (value < low || (value == low && !closed) || value > kMaxReal) {
            add("{} is {}, must be {} {} and at most {}", label(name), value, closed ? "at least" : "above", low,
                kMaxReal);
            return 0;
        }
        return value;
    }

    const json* array(std::string_view name) {
        const json* field = require(name);
        if (field != nullptr && !field->is_array()) {
            add("{} must be a list", label(name));
            return nullptr;
        }
        return field;
    }

    FieldReader object(std::string_view name) {
        static const json empty = json::object();
        const json* field = require(name);
        if (field != nullptr && !field->is_object()) {
            add("{} must be an object", label(name));
            field = nullptr;
        }
        return {field == nullptr ? empty : *field, label(name), problems_};
    }

    // A field that the engine does not read, but whose other values would mean another model.
    void expect(std::string_view name, const json& only) {
        if (const json* field = find(name); field != nullptr && *field != only) {
            add("{} is {}, only {} is supported", label(name), field->dump(), only.dump());
        }
    }

    std::optional<std::int32_t> as_integer(const json& field, const std::string& name, std::int64_t low,
                                           std::int64_t high) {
        if (!field.is_number_integer()) {
            add("{} must be an integer, not {}", name, field.dump());
            return std::nullopt;
        }
        const bool too_large =
            field.is_number_unsigned() && field.get<std::uint64_t>() > static_cast<std::uint64_t>(high);
        if (too_large || field.get<std::int64_t>() < low || field.get<std::int64_t>() > high) {
            add("{} is {}, must be between {} and {}", name, field.dump(), low, high);
            return std::nullopt;
        }
        return static_cast<std::int32_t>(field.get<std::int64_t>());
    }

    template <class... Args>
    void add(fmt::format_string<Args...> text, Args&&... args) {
        problems_.push_back(fmt::format(text, std::forward<Args>(args)...));
    }

    std::string label(std::string_view name) const {
        return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
    }

  private:
    const json* require(std::string_view name) {
        const json* field = find(name);
        if (field == nullptr) {
            add("{} is missing", label(name));
        }
        return field;
    }

    const json& object_;
    std::string path_;
    std::vector<std::string>& problems_;
};

void check_ratio(FieldReader& config, std::size_t layer, std::int32_t ratio) {
    if (ratio == 1 || ratio == 2) {
        config.add("compress_ratios[{}] is {}: ratios 1 and 2 belong to DeepSeek-V4.1, another architecture", layer,
                   ratio);
    } else if (ratio == 3) {
        config.add("compress_ratios[{}] is 3: only 0, 4 and values above 4 have a meaning", layer);
    }
}

std::vector<std::int32_t> read_compress_ratios(FieldReader& config, std::size_t num_layers) {
    std::vector<std::int32_t> ratios;
    const json* list = config.array("compress_ratios");
    if (list == nullptr) {
        return ratios;
    }
    if (list->size() < num_layers) {
        config.add("compress_ratios has {} entries for {} layers", list->size(), num_layers);
    }
    const std::size_t count = std::min(list->size(), num_layers);  // entries after the main layers are those of MTP
    for (std::size_t l = 0; l < count; ++l) {
        const auto ratio = config.as_integer((*list)[l], fmt::format("compress_ratios[{}]", l), 0, kMaxSize);
        ratios.push_back(ratio.value_or(0));
        check_ratio(config, l, ratios.back());
    }
    return ratios;
}

std::vector<std::int32_t> read_layer_types(FieldReader& config, std::size_t num_layers) {
    std::vector<std::int32_t> ratios;
    const json* types = config.array("layer_types");
    FieldReader rates = config.object("compress_rates");
    if (types == nullptr) {
        return ratios;
    }
    if (types->size() != num_layers) {
        config.add("layer_types has {} entries for {} layers", types->size(), num_layers);
    }
    const auto has = [&](std::string_view type) {
        return std::find(types->begin(), types->end(), type) != types->end();
    };
    const std::int32_t csa = has(kCsaType) ? rates.integer(kCsaType, 4, 4) : 0;
    const std::int32_t hca = has(kHcaType) ? rates.integer(kHcaType, 5, kMaxSize) : 0;
    for (const json& type : *types) {
        if (type != kWindowType && type != kCsaType && type != kHcaType) {
            config.add("layer_types has {}, known are {}, {}, {}", type.dump(), kWindowType, kCsaType, kHcaType);
        }
        ratios.push_back(type == kCsaType ? csa : type == kHcaType ? hca : 0);
    }
    return ratios;
}

std::int32_t read_hash_layers(FieldReader& config, std::int32_t num_layers) {
    if (config.find("num_hash_layers") != nullptr || config.find("mlp_layer_types") == nullptr) {
        return config.integer("num_hash_layers", 0, num_layers);
    }
    const json* types = config.array("mlp_layer_types");
    std::int32_t num_hash = 0;
    if (types != nullptr) {
        if (types->size() != static_cast<std::size_t>(num_layers)) {
            config.add("mlp_layer_types has {} entries for {} layers", types->size(), num_layers);
        }
        const auto first_score =
            std::find_if(types->begin(), types->end(), [](const json& t) { return t != "hash_moe"; });
        if (!std::all_of(first_score, types->end(), [](const json& t) { return t == "moe"; })) {
            config.add("mlp_layer_types must be hash_moe layers followed by moe layers");
        }
        num_hash = static_cast<std::int32_t>(first_score - types->begin());
    }
    return num_hash;
}

std::int32_t read_rope_dim(FieldReader& config, std::int32_t head_dim) {
    if (config.find("qk_rope_head_dim") != nullptr || config.find("partial_rotary_factor") == nullptr) {
        return config.integer("qk_rope_head_dim", 2, kMaxSize);
    }
    return static_cast<std::int32_t>(std::lround(std::min(config.real("partial_rotary_factor", 0), 1.0) * head_dim));
}

YarnScaling read_yarn(FieldReader fields, std::int32_t max_positions) {
    YarnScaling yarn;
    const std::string_view spelling = fields.find("rope_type") != nullptr ? "rope_type" : "type";
    const json* type = fields.find(spelling);
    if (type == nullptr) {
        fields.add("{} is missing", fields.label("type"));
    } else if (*type == "default") {
        yarn.original_max_position = max_positions;  // factor 1 leaves the frequencies as they are
    } else if (*type == "yarn") {
        yarn.factor = fields.real("factor", 1, /*closed=*/true);
        yarn.original_max_position = fields.integer("original_max_position_embeddings", 1, kMaxSize);
        yarn.beta_fast = fields.real("beta_fast", 0);
        yarn.beta_slow = fields.real("beta_slow", 0);
    } else {
        fields.add("{} is {}, only \"yarn\" is supported", fields.label(spelling), type->dump());
    }
    return yarn;
}

void read_rope(FieldReader& config, ModelGeometry& g) {
    const json* parameters = config.find("rope_parameters");
    if (config.find("rope_scaling") == nullptr && parameters != nullptr && parameters->contains("compress")) {
        FieldReader nested = config.object("rope_parameters");
        FieldReader compress = nested.object("compress");
        g.rope_theta = nested.object("main").real("rope_theta", 1);
        g.compress_rope_theta = compress.real("rope_theta", 1);
        g.yarn = read_yarn(compress, g.max_positions);
        return;
    }
    // A rope_theta inside rope_scaling is ignored by every implementation.
    g.rope_theta = config.real("rope_theta", 1);
    g.compress_rope_theta = config.real("compress_rope_theta", 1);
    g.yarn = read_yarn(config.object("rope_scaling"), g.max_positions);
}

void expect_family(FieldReader& config) {
    if (config.find("model_type") == nullptr) {
        config.add("model_type is missing");
    }
    config.expect("model_type", "deepseek_v4");
    config.expect("num_key_value_heads", 1);
    config.expect("n_shared_experts", 1);
    config.expect("scoring_func", "sqrtsoftplus");
    config.expect("topk_method", "noaux_tc");
    config.expect("hidden_act", "silu");
    config.expect("attention_bias", false);
    config.expect("tie_word_embeddings", false);
}

ModelGeometry read_fields(FieldReader& config) {
    ModelGeometry g;
    g.vocab_size = config.integer("vocab_size", 1, kMaxSize);
    g.hidden_size = config.integer("hidden_size", 1, kMaxSize);
    g.num_layers = config.integer("num_hidden_layers", 1, kMaxLayers);
    g.num_heads = config.integer("num_attention_heads", 1, kMaxSize);
    g.head_dim = config.integer("head_dim", 1, kMaxSize);
    g.rope_dim = read_rope_dim(config, g.head_dim);
    g.q_lora_rank = config.integer("q_lora_rank", 1, kMaxSize);
    g.o_groups = config.integer("o_groups", 1, kMaxSize);
    g.o_lora_rank = config.integer("o_lora_rank", 1, kMaxSize);
    g.window = config.integer("sliding_window", 1, kMaxSize);
    const auto num_layers = static_cast<std::size_t>(g.num_layers);
    const bool by_type = config.find("compress_ratios") == nullptr && config.find("layer_types") != nullptr;
    g.ratios = by_type ? read_layer_types(config, num_layers) : read_compress_ratios(config, num_layers);
    g.max_positions = config.integer("max_position_embeddings", 1, kMaxSize);
    read_rope(config, g);
    g.index_heads = config.integer("index_n_heads", 1, kMaxSize);
    g.index_dim = config.integer("index_head_dim", 1, kMaxSize);
    g.index_topk = config.integer("index_topk", 1, kMaxSize);
    g.num_experts = config.integer("n_routed_experts", 1, kMaxExperts);
    g.top_k = config.integer("num_experts_per_tok", 1, kMaxExperts);
    g.expert_inter = config.integer("moe_intermediate_size", 1, kMaxSize);
    g.routed_scale = config.real("routed_scaling_factor", 0);
    g.num_hash_layers = read_hash_layers(config, g.num_layers);
    g.swiglu_limit = static_cast<float>(config.real("swiglu_limit", 0));
    g.hc_mult = config.integer("hc_mult", 1, kMaxStreams);
    g.hc_iters = config.integer("hc_sinkhorn_iters", 1, kMaxLayers);
    g.hc_eps = static_cast<float>(config.real("hc_eps", 0));
    g.rms_eps = static_cast<float>(config.real("rms_norm_eps", 0));
    g.num_mtp_layers = config.integer_or("num_nextn_predict_layers", 0, 0, kMaxLayers);
    g.bos_id = config.integer_or("bos_token_id", g.bos_id, 0, kMaxSize);
    g.eos_id = config.integer_or("eos_token_id", g.eos_id, 0, kMaxSize);
    return g;
}

// What one field alone cannot tell. Fields that failed to read are 0 and reported already.
void check_relations(FieldReader& config, const ModelGeometry& g) {
    if (g.o_groups > 0 && g.num_heads % g.o_groups != 0) {
        config.add("num_attention_heads {} is not divisible by o_groups {}", g.num_heads, g.o_groups);
    }
    if (g.rope_dim % 2 != 0) {
        config.add("qk_rope_head_dim {} must be even", g.rope_dim);
    }
    if (g.rope_dim > g.head_dim) {
        config.add("qk_rope_head_dim {} exceeds head_dim {}", g.rope_dim, g.head_dim);
    }
    const bool has_csa = std::find(g.ratios.begin(), g.ratios.end(), 4) != g.ratios.end();
    if (has_csa && g.rope_dim > g.index_dim) {
        config.add("qk_rope_head_dim {} exceeds index_head_dim {}", g.rope_dim, g.index_dim);
    }
    if (g.index_dim > 0 && !std::has_single_bit(static_cast<std::uint32_t>(g.index_dim))) {
        config.add("index_head_dim {} is no power of two, which the Hadamard rotation needs", g.index_dim);
    }
    if (g.top_k > g.num_experts) {
        config.add("num_experts_per_tok {} exceeds n_routed_experts {}", g.top_k, g.num_experts);
    }
    for (const auto& [name, id] : {std::pair{"bos_token_id", g.bos_id}, std::pair{"eos_token_id", g.eos_id}}) {
        if (g.vocab_size > 0 && id >= g.vocab_size) {
            config.add("{} {} is not below vocab_size {}", name, id, g.vocab_size);
        }
    }
    const auto check_product = [&](const char* names, std::int64_t product) {
        if (product > std::numeric_limits<std::int32_t>::max()) {
            config.add("{} is {}, too large", names, product);
        }
    };
    check_product("num_attention_heads * head_dim", std::int64_t{g.num_heads} * g.head_dim);
    check_product("o_groups * o_lora_rank", std::int64_t{g.o_groups} * g.o_lora_rank);
    check_product("index_n_heads * index_head_dim", std::int64_t{g.index_heads} * g.index_dim);
    check_product("hc_mult * hidden_size", std::int64_t{g.hc_mult} * g.hidden_size);
}

}  // namespace

Result<ModelGeometry> parse_model_geometry(std::string_view config_json) {
    const json root = json::parse(config_json, nullptr, /*allow_exceptions=*/false);
    if (root.is_discarded() || !root.is_object()) {
        return invalid("config.json: not a JSON object");
    }
    std::vector<std::string> problems;
    FieldReader config(root, "", problems);
    expect_family(config);
    ModelGeometry geometry = read_fields(config);
    check_relations(config, geometry);
    if (!problems.empty()) {
        return invalid(fmt::format("config.json: {}", fmt::join(problems, "; ")));
    }
    return geometry;
}

}  // namespace megamoe
