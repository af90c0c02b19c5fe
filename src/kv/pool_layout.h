// Where each layer's rows lie inside a page of each pool group, and what a page costs.
//
// Three groups a rank:
//   token   one page = page_size tokens of history: per CSA layer page_size/4 entries [D] and page_size/4 indexer keys
//           [J], per HCA layer page_size/r entries [D]; cache values
//   window  one page = page_size tokens of every layer's k_t [D]; cache values; given back behind the window
//   state   one slot a request: per CSA layer a ring of 8 rows [2*2*D] for the attention compressor and 8 rows [2*2*J]
//           for the indexer's, per HCA layer a ring of r rows [2*D]; float32; row of position t is t mod ring
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "config/model_geometry.h"

namespace megamoe::kv {

enum class StateKind : std::uint8_t { kAttention, kIndexer };

inline constexpr std::int32_t kCsaRing = 8;  // rows: the last closed window and the open one

struct LayerLayout {
    std::int32_t ratio = 0;             // 0: window only
    std::int32_t entries_per_page = 0;  // page_size / ratio
    std::int64_t entry_offset = 0;      // bytes into a token page
    std::int64_t index_offset = 0;      // CSA
    std::int64_t window_offset = 0;     // bytes into a window page
    std::int32_t state_ring = 0;        // rows: 8 for CSA, r for HCA
    std::int64_t attention_offset = 0;  // floats into a state slot
    std::int64_t indexer_offset = 0;    // floats; CSA
    std::int32_t attention_width = 0;   // floats a row
    std::int32_t indexer_width = 0;     // floats a row; CSA
};

struct PoolLayout {
    std::int32_t page_size = 0;    // tokens
    std::int32_t window = 0;       // [W]
    std::int32_t value_bytes = 0;  // of one cache value: 4 = float32, 2 = bfloat16
    std::int64_t row_bytes = 0;    // an entry or a k_t: D values
    std::int64_t index_bytes = 0;  // an indexer key: J values
    std::int64_t token_page_bytes = 0;
    std::int64_t window_page_bytes = 0;
    std::int64_t state_slot_floats = 0;
    std::vector<LayerLayout> layers{};

    std::int64_t state_slot_bytes() const { return state_slot_floats * 4; }
    std::int32_t pages_of(std::int32_t num_tokens) const { return (num_tokens + page_size - 1) / page_size; }
    // Most window pages that one request in decode owns: W positions, the first of them the last one of its page.
    std::int32_t window_pages_of_one() const { return (window + page_size - 2) / page_size + 1; }
    // Window pages that hold what the queries at positions [start, end) see and write.
    std::int32_t window_pages_of(std::int32_t start, std::int32_t end) const;
};

// Error kInvalidArgument: page_size is not a positive multiple of every ratio (the ratio is named); value_bytes
//       is neither 2 nor 4
// Spec  model spec, 4.1; serving spec, 6
[[nodiscard]] Result<PoolLayout> make_layout(const ModelGeometry& geometry, std::int32_t page_size,
                                             std::int32_t value_bytes);

}  // namespace megamoe::kv
