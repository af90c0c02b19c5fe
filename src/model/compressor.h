// The compressors of a layer: raw rows into the state rings, closed windows into entries.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "model/step_context.h"

namespace megamoe::model {

struct CompressorSite {
    const Compressor* weights = nullptr;
    std::int32_t dim = 0;    // [d]: D for attention, J for the indexer
    std::int32_t ratio = 0;  // [r]
    kv::StateKind state{};   // which ring of the state slot
    std::int32_t layer_idx = 0;
};

// Called for each closed window, by sequence in order: the entry [d] after norm and RoPE at position window * ratio.
using EntryStore = std::function<void(const kv::Sequence& sequence, std::int32_t window, std::span<float> entry)>;

// In    x [rows, H]
// Same  an entry depends on the tokens of its window (and, for ratio 4, of the one before) alone
// Spec  model spec, 3.6 and 5 (ring form)
void run_compressor(const StepContext& c, const CompressorSite& site, const float* x, const EntryStore& store);

}  // namespace megamoe::model
