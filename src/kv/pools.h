// The cache memory of one rank: three page groups and who owns which page. What a row means is the forward's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "kv/page_allocator.h"
#include "kv/pool_layout.h"
#include "kv/sequence.h"

namespace megamoe::kv {

// Pages and slots of a rank; page 0 and slot 0, for dummies, included.
struct PoolSizes {
    std::int32_t token_pages = 0;
    std::int32_t window_pages = 0;
    std::int32_t state_slots = 0;
    friend bool operator==(const PoolSizes&, const PoolSizes&) = default;
};

// Rows are addressed by (layer, page, place in the page) or, shorter, by (layer, sequence, position). Memory starts as
// zeros and is touched lazily. A page or state slot that was owned before keeps its old content: the forward reads no
// row that the same sequence has not written.
//
// Thread  the rank's own; its compute threads may read and write rows during a forward
class Pools {
  public:
    // Error kResourceExhausted: the address space could not be had (group and bytes are named)
    [[nodiscard]] static Result<std::unique_ptr<Pools>> create(const PoolLayout& layout, const PoolSizes& sizes);
    ~Pools();  // all sequences must be gone
    Pools(const Pools&) = delete;
    Pools& operator=(const Pools&) = delete;

    const PoolLayout& layout() const { return layout_; }
    PageAllocator& token_pages() { return token_pages_; }
    PageAllocator& window_pages() { return window_pages_; }
    PageAllocator& state_slots() { return state_slots_; }
    const PageAllocator& token_pages() const { return token_pages_; }
    const PageAllocator& window_pages() const { return window_pages_; }
    const PageAllocator& state_slots() const { return state_slots_; }

    // k_t of the token at `offset` of a window page: D values.
    std::byte* window_row(std::int32_t layer, std::int32_t window_page, std::int32_t offset) const {
        return window_base_ + window_page * layout_.window_page_bytes + at(layer).window_offset +
               offset * layout_.row_bytes;
    }
    // Compressed entry `idx` (< entries_per_page) of a token page: D values. CSA and HCA layers.
    std::byte* entry_row(std::int32_t layer, std::int32_t token_page, std::int32_t idx) const {
        return token_base_ + token_page * layout_.token_page_bytes + at(layer).entry_offset + idx * layout_.row_bytes;
    }
    // Indexer key `idx` of a token page: J values. CSA layers.
    std::byte* index_row(std::int32_t layer, std::int32_t token_page, std::int32_t idx) const {
        return token_base_ + token_page * layout_.token_page_bytes + at(layer).index_offset + idx * layout_.index_bytes;
    }
    // Row 0 of a state ring: state_ring rows of attention_width or indexer_width floats.
    float* state(std::int32_t layer, StateKind which, std::int32_t slot) const {
        const LayerLayout& l = at(layer);
        return state_base_ + slot * layout_.state_slot_floats +
               (which == StateKind::kAttention ? l.attention_offset : l.indexer_offset);
    }

    // The same by sequence: position t, entry w (of tokens [w*r, (w+1)*r)).
    std::byte* window_row(std::int32_t layer, const Sequence& seq, std::int32_t t) const {
        const auto page = static_cast<std::size_t>(t / layout_.page_size);
        return window_row(layer, seq.window_pages()[page], t % layout_.page_size);
    }
    std::byte* entry_row(std::int32_t layer, const Sequence& seq, std::int32_t w) const {
        const std::int32_t n = at(layer).entries_per_page;
        return entry_row(layer, seq.token_pages()[static_cast<std::size_t>(w / n)], w % n);
    }
    std::byte* index_row(std::int32_t layer, const Sequence& seq, std::int32_t w) const {
        const std::int32_t n = at(layer).entries_per_page;
        return index_row(layer, seq.token_pages()[static_cast<std::size_t>(w / n)], w % n);
    }
    float* state_row(std::int32_t layer, StateKind which, const Sequence& seq, std::int32_t t) const {
        const LayerLayout& l = at(layer);
        const std::int32_t width = which == StateKind::kAttention ? l.attention_width : l.indexer_width;
        return state(layer, which, seq.state_slot()) + std::int64_t{t % l.state_ring} * width;
    }

    // The leak check over all groups; `live` is every sequence that exists.
    // Error kInternal, naming the group
    // Spec  serving spec, 5.6
    [[nodiscard]] Result<Done> census(std::span<const Sequence* const> live) const;

  private:
    Pools(const PoolLayout& layout, const PoolSizes& sizes);
    const LayerLayout& at(std::int32_t layer) const { return layout_.layers[static_cast<std::size_t>(layer)]; }

    struct Memory;
    PoolLayout layout_;
    PageAllocator token_pages_, window_pages_, state_slots_;
    std::unique_ptr<Memory> memory_;
    std::byte* token_base_ = nullptr;
    std::byte* window_base_ = nullptr;
    float* state_base_ = nullptr;
};

}  // namespace megamoe::kv
