#include "kv/pool_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace megamoe::kv {
namespace {

constexpr std::int64_t kAlignBytes = 64;

std::int64_t aligned(std::int64_t bytes) {
    return (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
}

// Reserves `bytes` at the end of a page or slot and returns where they start.
std::int64_t append(std::int64_t& end, std::int64_t bytes) {
    const std::int64_t start = end;
    end = aligned(end + bytes);
    return start;
}

std::int64_t append_floats(std::int64_t& end, std::int64_t floats) {
    std::int64_t end_bytes = end * 4;
    const std::int64_t start_bytes = append(end_bytes, floats * 4);
    end = end_bytes / 4;
    return start_bytes / 4;
}

}  // namespace

std::int32_t PoolLayout::window_pages_of(std::int32_t start, std::int32_t end) const {
    return pages_of(end) - std::max(start - window + 1, 0) / page_size;
}

Result<PoolLayout> make_layout(const ModelGeometry& geometry, std::int32_t page_size, std::int32_t value_bytes) {
    if (value_bytes != 2 && value_bytes != 4) {
        return invalid(fmt::format("cache values of {} bytes; 2 (bfloat16) or 4 (float32) are known", value_bytes));
    }
    if (page_size < 1) {
        return invalid(fmt::format("page_size {} is not positive", page_size));
    }
    PoolLayout layout{.page_size = page_size,
                      .window = geometry.window,
                      .value_bytes = value_bytes,
                      .row_bytes = std::int64_t{geometry.head_dim} * value_bytes,
                      .index_bytes = std::int64_t{geometry.index_dim} * value_bytes};
    for (std::int32_t l = 0; l < geometry.num_layers; ++l) {
        LayerLayout layer{.ratio = geometry.ratios[static_cast<std::size_t>(l)]};
        layer.window_offset = append(layout.window_page_bytes, page_size * layout.row_bytes);
        if (layer.ratio > 0) {
            if (page_size % layer.ratio != 0) {
                return Error{Errc::kInvalidArgument,
                             fmt::format("page_size {} is not a multiple of the compression ratio {} of layer {}",
                                         page_size, layer.ratio, l),
                             "use a multiple of every ratio, such as 256"};
            }
            const bool csa = geometry.kind(l) == LayerKind::kCsa;
            layer.entries_per_page = page_size / layer.ratio;
            layer.entry_offset = append(layout.token_page_bytes, layer.entries_per_page * layout.row_bytes);
            layer.state_ring = csa ? kCsaRing : layer.ratio;
            layer.attention_width = (csa ? 4 : 2) * geometry.head_dim;  // value and gate; CSA: of the A and the B half
            layer.attention_offset =
                append_floats(layout.state_slot_floats, std::int64_t{layer.state_ring} * layer.attention_width);
            if (csa) {
                layer.index_offset = append(layout.token_page_bytes, layer.entries_per_page * layout.index_bytes);
                layer.indexer_width = 4 * geometry.index_dim;
                layer.indexer_offset =
                    append_floats(layout.state_slot_floats, std::int64_t{layer.state_ring} * layer.indexer_width);
            }
        }
        layout.layers.push_back(layer);
    }
    return layout;
}

}  // namespace megamoe::kv
