#include "config/model_geometry.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace megamoe {
namespace {

using nlohmann::json;

std::string read_text(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

json mini_config() {
    return json::parse(read_text("models/mini/config.json"));
}

std::string problems_of(const json& config) {
    const auto geometry = parse_model_geometry(config.dump());
    return geometry ? "" : geometry.error().what;
}

// The text of the error that mini's config gives once `field` is `value`.
std::string problems_with(const std::string& field, const json& value) {
    json config = mini_config();
    config[field] = value;
    return problems_of(config);
}

ModelGeometry random_geometry() {
    const auto upto = [](std::int32_t high) { return *rc::gen::inRange<std::int32_t>(1, high + 1); };
    ModelGeometry g;
    g.vocab_size = 2 + upto(200000);
    g.hidden_size = upto(8192);
    g.num_layers = upto(64);
    g.o_groups = upto(16);
    g.num_heads = g.o_groups * upto(16);
    g.rope_dim = 2 * upto(32);
    g.head_dim = g.rope_dim + upto(512);
    g.q_lora_rank = upto(2048);
    g.o_lora_rank = upto(1024);
    g.window = upto(512);
    g.ratios = *rc::gen::container<std::vector<std::int32_t>>(static_cast<std::size_t>(g.num_layers),
                                                              rc::gen::element(0, 4, 5, 16, 128));
    g.rope_theta = 1 + upto(1000000) * 0.37;
    g.compress_rope_theta = 1 + upto(1000000) * 0.73;
    g.yarn = {1 + upto(100) * 0.1, upto(1 << 20), upto(64) * 0.7, upto(8) * 0.3};
    g.max_positions = upto(1 << 20);
    g.index_heads = upto(64);
    g.index_dim = 64 << *rc::gen::inRange(0, 3);
    g.index_topk = upto(2048);
    g.num_experts = upto(512);
    g.top_k = upto(g.num_experts);
    g.expert_inter = upto(4096);
    g.routed_scale = upto(100) * 0.1;
    g.num_hash_layers = *rc::gen::inRange(0, g.num_layers + 1);
    g.swiglu_limit = static_cast<float>(upto(1000)) * 0.1F;
    g.hc_mult = upto(8);
    g.hc_iters = upto(40);
    g.hc_eps = 1e-7F * static_cast<float>(upto(100));
    g.rms_eps = 1e-7F * static_cast<float>(upto(100));
    g.num_mtp_layers = *rc::gen::inRange(0, 4);
    return g;
}

TEST(ModelGeometry, ReadsBackWhatItWrote) {
    EXPECT_TRUE(rc::check([] {
        const ModelGeometry geometry = random_geometry();

        const auto parsed = parse_model_geometry(to_config_json(geometry));

        RC_ASSERT(static_cast<bool>(parsed));
        RC_ASSERT(parsed.value() == geometry);
    }));
}

TEST(ModelGeometry, ReportsAnyMissingFieldByItsName) {
    for (const char* field : {"model_type",
                              "vocab_size",
                              "hidden_size",
                              "num_hidden_layers",
                              "num_attention_heads",
                              "head_dim",
                              "qk_rope_head_dim",
                              "q_lora_rank",
                              "o_groups",
                              "o_lora_rank",
                              "sliding_window",
                              "compress_ratios",
                              "compress_rope_theta",
                              "rope_theta",
                              "rope_scaling",
                              "max_position_embeddings",
                              "index_n_heads",
                              "index_head_dim",
                              "index_topk",
                              "n_routed_experts",
                              "num_experts_per_tok",
                              "moe_intermediate_size",
                              "routed_scaling_factor",
                              "num_hash_layers",
                              "swiglu_limit",
                              "hc_mult",
                              "hc_sinkhorn_iters",
                              "hc_eps",
                              "rms_norm_eps"}) {
        json config = mini_config();
        config.erase(field);

        EXPECT_NE(problems_of(config).find(std::string(field) + " is missing"), std::string::npos)
            << problems_of(config);
    }
}

TEST(ModelGeometry, ReportsAWrongTypeOfAnyFieldWithoutThrowing) {
    const json wrong[] = {"text", -1, 2.5, json::array({"x"}), json::object(), true, 1e300};
    const json config = mini_config();
    for (const auto& [field, value] : config.items()) {
        for (const json& other : wrong) {
            json changed = config;
            changed[field] = other;

            const auto parsed = parse_model_geometry(changed.dump());  // some are legal (2.5 as a real): only no crash

            if (!parsed) {
                EXPECT_NE(parsed.error().what.find("config.json: "), std::string::npos);
            }
        }
    }
}

TEST(ModelGeometry, ReadsTheMiniModel) {
    const auto parsed = parse_model_geometry(read_text("models/mini/config.json"));

    ASSERT_TRUE(parsed) << parsed.error().what;
    const ModelGeometry& g = parsed.value();
    EXPECT_EQ(g.vocab_size, 4096);
    EXPECT_EQ(g.num_layers, 6);
    EXPECT_EQ(g.ratios, (std::vector{0, 4, 128, 4, 128, 4}));
    EXPECT_EQ(g.kind(0), LayerKind::kWindow);
    EXPECT_EQ(g.kind(1), LayerKind::kCsa);
    EXPECT_EQ(g.kind(2), LayerKind::kHca);
    EXPECT_EQ(g.yarn, (YarnScaling{4, 1024, 32, 1}));
    EXPECT_EQ(g.compress_rope_theta, 160000);  // not the 10000 inside rope_scaling
    EXPECT_EQ(g.num_hash_layers, 2);
    EXPECT_EQ(g.swiglu_limit, 10.0F);
    EXPECT_EQ(g.hc_eps, 1e-6F);
}

TEST(ModelGeometry, ReadsTheSpellingThatTransformersSaves) {
    const auto released = parse_model_geometry(read_text("tests/golden/tiny-b/config.json"));
    ASSERT_TRUE(released) << released.error().what;
    json config = json::parse(read_text("tests/golden/tiny-b/config.json"));
    for (const char* field : {"compress_ratios", "num_hash_layers", "qk_rope_head_dim", "rope_scaling", "rope_theta",
                              "compress_rope_theta"}) {
        config.erase(field);
    }
    const std::string csa = "compressed_sparse_attention";
    const std::string hca = "heavily_compressed_attention";
    config["layer_types"] = {"sliding_attention", csa, hca, csa, hca, "sliding_attention"};
    config["compress_rates"] = {{csa, 4}, {hca, 16}};
    config["mlp_layer_types"] = {"hash_moe", "hash_moe", "moe", "moe", "moe", "moe"};
    config["partial_rotary_factor"] = 0.25;
    config["rope_parameters"] = {{"main", {{"rope_type", "default"}, {"rope_theta", 10000}}},
                                 {"compress",
                                  {{"rope_type", "yarn"},
                                   {"rope_theta", 160000},
                                   {"factor", 4},
                                   {"original_max_position_embeddings", 64},
                                   {"beta_fast", 32},
                                   {"beta_slow", 1},
                                   {"attention_factor", 1.0}}}};

    const auto parsed = parse_model_geometry(config.dump());

    ASSERT_TRUE(parsed) << parsed.error().what;
    EXPECT_EQ(parsed.value(), released.value());
}

TEST(ModelGeometry, ReportsAllProblemsInOneText) {
    json config = mini_config();
    config.erase("hidden_size");
    config["swiglu_limit"] = "ten";
    config["num_experts_per_tok"] = 33;
    config["o_groups"] = 3;

    const std::string text = problems_of(config);

    for (const char* part : {"hidden_size is missing", "swiglu_limit must be a number, not \"ten\"",
                             "num_experts_per_tok 33 exceeds n_routed_experts 32",
                             "num_attention_heads 8 is not divisible by o_groups 3"}) {
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
}

TEST(ModelGeometry, RefusesWhatTheFamilyDoesNotAllow) {
    struct Case {
        const char* field;
        json value;
        const char* expected;
    };
    const Case cases[] = {
        {"model_type", "deepseek_v3", "model_type is \"deepseek_v3\", only \"deepseek_v4\" is supported"},
        {"compress_ratios", {0, 4, 128}, "compress_ratios has 3 entries for 6 layers"},
        {"compress_ratios", {0, 4, 3, 4, 128, 4}, "compress_ratios[2] is 3: only 0, 4 and values above 4"},
        {"compress_ratios", {0, 0, 2, 2, 1, 1}, "compress_ratios[2] is 2: ratios 1 and 2 belong to DeepSeek-V4.1"},
        {"compress_ratios", {0, 4, -128, 4, 128, 4}, "compress_ratios[2] is -128, must be between 0"},
        {"qk_rope_head_dim", 63, "qk_rope_head_dim 63 must be even"},
        {"qk_rope_head_dim", 256, "qk_rope_head_dim 256 exceeds head_dim 128"},
        {"index_head_dim", 32, "qk_rope_head_dim 64 exceeds index_head_dim 32"},
        {"index_head_dim", 96, "index_head_dim 96 is no power of two"},
        {"num_hash_layers", 7, "num_hash_layers is 7, must be between 0 and 6"},
        {"hidden_size", 0, "hidden_size is 0, must be between 1"},
        {"hidden_size", 256.0, "hidden_size must be an integer, not 256.0"},
        {"vocab_size", 18446744073709551615U, "vocab_size is 18446744073709551615, must be between 1"},
        {"rms_norm_eps", 0, "rms_norm_eps is 0, must be above 0"},
        {"n_shared_experts", 2, "n_shared_experts is 2, only 1 is supported"},
        {"scoring_func", "softmax", "scoring_func is \"softmax\""},
        {"eos_token_id", 4096, "eos_token_id 4096 is not below vocab_size 4096"},
        {"rope_scaling", {{"type", "linear"}}, "rope_scaling.type is \"linear\", only \"yarn\" is supported"},
        {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4}}, "rope_scaling.beta_fast is missing"},
    };
    for (const Case& c : cases) {
        const std::string text = problems_with(c.field, c.value);

        EXPECT_NE(text.find(c.expected), std::string::npos) << c.field << ": " << text;
    }
}

TEST(ModelGeometry, RefusesProductsThatDoNotFitInto32Bits) {
    EXPECT_NE(problems_with("num_attention_heads", 1 << 24).find("num_attention_heads * head_dim is 2147483648"),
              std::string::npos);
}

TEST(ModelGeometry, IgnoresEntriesAfterTheMainLayers) {
    json config = mini_config();
    config["compress_ratios"] = {0, 4, 128, 4, 128, 4, 0, 0, 0};  // three draft stages

    EXPECT_EQ(problems_of(config), "");
}

TEST(ModelGeometry, RefusesTextThatIsNoJsonObject) {
    for (const char* text : {"", "{", "[]", "null", "{\"a\":}", "\xff\xfe"}) {
        EXPECT_FALSE(parse_model_geometry(text)) << text;
    }
}

}  // namespace
}  // namespace megamoe
