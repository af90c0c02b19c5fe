#include "kv/page_allocator.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace megamoe::kv {

PageAllocator::PageAllocator(std::int32_t num_pages)
    : num_pages_(num_pages), owned_(static_cast<std::size_t>(num_pages), false) {
    MM_CHECK(num_pages >= 1, "num_pages", num_pages);
    free_.reserve(static_cast<std::size_t>(num_pages));
    for (std::int32_t page = num_pages - 1; page >= 1; --page) {
        free_.push_back(page);  // page 1 goes first
    }
}

PageAllocator::~PageAllocator() {
    MM_CHECK(num_held() == 0, "pages still owned", num_held());
}

std::int32_t PageAllocator::take() {
    const std::int32_t page = free_.back();
    free_.pop_back();
    owned_[static_cast<std::size_t>(page)] = true;
    return page;
}

void PageAllocator::give_back(std::int32_t page) {
    MM_CHECK(page >= 1 && page < num_pages_, "page", page, "of", num_pages_);
    MM_CHECK(owned_[static_cast<std::size_t>(page)], "page returned twice", page);
    owned_[static_cast<std::size_t>(page)] = false;
    free_.push_back(page);
}

Result<Done> PageAllocator::census(std::span<const PageTable* const> held) const {
    const auto contradiction = [](std::string what) { return Error{Errc::kInternal, std::move(what), {}}; };
    std::vector<bool> seen(static_cast<std::size_t>(num_pages_), false);
    const auto seen_before = [&seen](std::int32_t page) {
        const bool before = seen[static_cast<std::size_t>(page)];
        seen[static_cast<std::size_t>(page)] = true;
        return before;
    };
    for (const std::int32_t page : free_) {
        if (page < 1 || page >= num_pages_ || owned_[static_cast<std::size_t>(page)]) {
            return contradiction(fmt::format("page {} is free and owned, reserved or unknown", page));
        }
        if (seen_before(page)) {
            return contradiction(fmt::format("page {} is free twice", page));
        }
    }
    std::int32_t num_seen = 0;
    for (const PageTable* table : held) {
        for (const std::int32_t page : table->pages()) {
            if (page == 0) {
                continue;  // dropped
            }
            if (!owned_[static_cast<std::size_t>(page)] || seen_before(page)) {
                return contradiction(
                    fmt::format("page {} has two owners, or an owner and a place in the free list", page));
            }
            ++num_seen;
        }
    }
    if (num_seen != num_held()) {
        return contradiction(
            fmt::format("{} pages of {} are out, but only {} have an owner", num_held(), usable(), num_seen));
    }
    return Done{};
}

PageTable::PageTable(PageTable&& other) noexcept
    : allocator_(other.allocator_),
      pages_(std::exchange(other.pages_, {})),
      num_dropped_(std::exchange(other.num_dropped_, 0)) {}

PageTable& PageTable::operator=(PageTable&& other) noexcept {
    if (this != &other) {
        clear();
        allocator_ = other.allocator_;
        pages_ = std::exchange(other.pages_, {});
        num_dropped_ = std::exchange(other.num_dropped_, 0);
    }
    return *this;
}

PageTable PageTable::reserved(PageAllocator& allocator) {
    PageTable table(allocator);
    table.pages_ = {0};
    table.num_dropped_ = 1;
    return table;
}

void PageTable::grow_to(std::int32_t new_size) {
    MM_CHECK(can_grow_to(new_size), "pages", new_size - size(), "free", allocator_->num_free());
    while (size() < new_size) {
        pages_.push_back(allocator_->take());
    }
}

void PageTable::drop_before(std::int32_t first) {
    MM_CHECK(first <= size(), "logical page", first, "of", size());
    for (; num_dropped_ < first; ++num_dropped_) {
        allocator_->give_back(std::exchange(pages_[static_cast<std::size_t>(num_dropped_)], 0));
    }
}

void PageTable::clear() {
    drop_before(size());
    pages_.clear();
    num_dropped_ = 0;
}

}  // namespace megamoe::kv
