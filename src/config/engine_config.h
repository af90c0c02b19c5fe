// What an engine is asked to be. Plain data: parsed, derived, checked, then passed by const reference.
#pragma once

#include <cstdint>
#include <string>

namespace megamoe {

enum class Profile : std::uint8_t {
    kHf,  // float32, no activation quantisation: compares with transformers
    kDs,  // released numerics: FP8 activations, bfloat16 streams
};

enum class MoeBackend : std::uint8_t {
    kReference,  // every rank sees every row: slow and obvious, the oracle of the others
    kStandard,   // separate stages: dispatch, grouped products, combine
    kMegaMoe1,   // fused, phase by phase
    kMegaMoe2,   // fused, exchange and products overlap
};

inline const char* name(MoeBackend backend) {
    constexpr const char* kNames[] = {"reference", "standard", "megamoe 1", "megamoe 2"};
    return kNames[static_cast<int>(backend)];
}

struct EngineConfig {
    Profile profile = Profile::kDs;
    MoeBackend moe_backend = MoeBackend::kStandard;
    std::int32_t num_ranks = 1;         // = tp_size = dp_size = ep_size here: DP attention, experts spread over all
    std::int32_t threads_per_rank = 0;  // 0 = cores / ranks, at least 1
    std::int32_t page_size = 256;       // tokens; a multiple of every compression ratio of the model
    std::int32_t max_running_requests = 256;   // all ranks together; a rank gets the floor of its share, at least 1
    std::int32_t max_queued_requests = 4096;   // all ranks together
    std::int32_t chunked_prefill_size = 8192;  // tokens a step, all ranks together; a rank gets its share
    std::int32_t context_length = 0;           // 0 = the model's max_position_embeddings
    std::int64_t max_total_tokens = 0;         // pages a rank can hold, in tokens; 0 = derived from memory
    double mem_fraction = 0.5;                 // of the free memory, for the cache, when max_total_tokens is 0
    std::string isa;                           // "" = the best this machine has
    std::int64_t exchange_timeout_ms = 60000;  // a rank waits this long for the others' proposals
};

}  // namespace megamoe
