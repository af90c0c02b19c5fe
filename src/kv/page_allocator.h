// Hands out numbered pages of one pool and takes them back. It knows numbers only, not what a page holds.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace megamoe::kv {

class PageTable;

// Page 0 is reserved for dummy rows and never handed out. Returning a page twice, or one never handed out, aborts.
// Thread  one
class PageAllocator {
  public:
    // Pages 0 .. num_pages-1, so `num_pages - 1` can be owned. num_pages >= 1.
    explicit PageAllocator(std::int32_t num_pages);
    PageAllocator(const PageAllocator&) = delete;
    PageAllocator& operator=(const PageAllocator&) = delete;
    ~PageAllocator();  // aborts if a page is still owned

    std::int32_t usable() const { return num_pages_ - 1; }
    std::int32_t num_free() const { return static_cast<std::int32_t>(free_.size()); }
    std::int32_t num_held() const { return usable() - num_free(); }

    // The leak check; can be run any time: free + held == usable, the free list names each page at most once, never
    // page 0 and never an owned one. `held` is what the callers believe they own, all tables together.
    // Error kInternal with the first contradiction
    // Spec  serving spec, 5.6 (level 3)
    [[nodiscard]] Result<Done> census(std::span<const PageTable* const> held) const;

  private:
    friend class PageTable;
    std::int32_t take();
    void give_back(std::int32_t page);

    std::int32_t num_pages_;
    std::vector<std::int32_t> free_;  // a stack; the page freed last is handed out first
    std::vector<bool> owned_;
};

// Pages of one allocator in logical order, owned: move-only, and what is left goes back on destruction.
class PageTable {
  public:
    explicit PageTable(PageAllocator& allocator) : allocator_(&allocator) {}
    // One entry, the reserved page 0, owned by nobody: what a dummy row reads and writes.
    static PageTable reserved(PageAllocator& allocator);
    PageTable(PageTable&& other) noexcept;
    PageTable& operator=(PageTable&& other) noexcept;
    ~PageTable() { clear(); }

    // Physical page by logical page; 0 where the page was dropped.
    std::span<const std::int32_t> pages() const { return pages_; }
    std::int32_t size() const { return static_cast<std::int32_t>(pages_.size()); }  // logical, dropped ones included
    std::int32_t num_owned() const { return size() - num_dropped_; }

    // Appends pages until size() == `new_size`; a smaller one changes nothing. Needs can_grow_to(new_size).
    void grow_to(std::int32_t new_size);
    bool can_grow_to(std::int32_t new_size) const { return new_size - size() <= allocator_->num_free(); }
    // Gives back the pages before logical page `first`; their entries become 0.
    void drop_before(std::int32_t first);
    void clear();

  private:
    PageAllocator* allocator_;
    std::vector<std::int32_t> pages_;
    std::int32_t num_dropped_ = 0;  // a prefix
};

}  // namespace megamoe::kv
