// For tests: the geometries of the released models, as their config.json state them (model spec, 1.2 and 1.3).
#pragma once

#include "config/model_geometry.h"

namespace megamoe::weights::testing {

inline ModelGeometry flash_geometry() {
    ModelGeometry g;
    g.vocab_size = 129280;
    g.hidden_size = 4096;
    g.num_layers = 43;
    g.num_heads = 64;
    g.head_dim = 512;
    g.rope_dim = 64;
    g.q_lora_rank = 1024;
    g.o_groups = 8;
    g.o_lora_rank = 1024;
    g.window = 128;
    g.ratios = {0, 0};
    for (int l = 2; l < g.num_layers; ++l) {
        g.ratios.push_back(l % 2 == 0 ? 4 : 128);
    }
    g.yarn = {16, 65536, 32, 1};
    g.max_positions = 1048576;
    g.index_heads = 64;
    g.index_dim = 128;
    g.index_topk = 512;
    g.num_experts = 256;
    g.top_k = 6;
    g.expert_inter = 2048;
    g.routed_scale = 1.5;
    g.num_hash_layers = 3;
    g.swiglu_limit = 10;
    g.hc_mult = 4;
    g.hc_iters = 20;
    g.hc_eps = 1e-6F;
    g.rms_eps = 1e-6F;
    g.num_mtp_layers = 1;
    return g;
}

inline ModelGeometry pro_geometry() {
    ModelGeometry g = flash_geometry();
    g.hidden_size = 7168;
    g.num_layers = 61;
    g.num_heads = 128;
    g.q_lora_rank = 1536;
    g.o_groups = 16;
    g.ratios = {128, 128};
    for (int l = 2; l < g.num_layers; ++l) {
        g.ratios.push_back(l % 2 == 0 ? 4 : 128);
    }
    g.index_topk = 1024;
    g.num_experts = 384;
    g.expert_inter = 3072;
    g.routed_scale = 2.5;
    return g;
}

}  // namespace megamoe::weights::testing
