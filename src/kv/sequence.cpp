#include "kv/sequence.h"

#include <algorithm>

#include "base/check.h"
#include "kv/pools.h"

namespace megamoe::kv {

Sequence::Sequence(Pools& pools)
    : page_size_(pools.layout().page_size),
      window_size_(pools.layout().window),
      token_(pools.token_pages()),
      window_(pools.window_pages()),
      state_(pools.state_slots()) {}

std::optional<Sequence> Sequence::open(Pools& pools) {
    Sequence sequence(pools);
    if (!sequence.state_.can_grow_to(1)) {
        return std::nullopt;
    }
    sequence.state_.grow_to(1);
    sequence.state_slot_ = sequence.state_.pages()[0];
    return sequence;
}

Sequence Sequence::dummy(Pools& pools) {
    Sequence sequence(pools);
    sequence.token_ = PageTable::reserved(pools.token_pages());
    sequence.window_ = PageTable::reserved(pools.window_pages());
    return sequence;
}

PageNeed Sequence::need(std::int32_t length) const {
    const std::int32_t pages = (length + page_size_ - 1) / page_size_;
    return {.token = std::max(pages - token_.size(), 0), .window = std::max(pages - window_.size(), 0)};
}

bool Sequence::reserve(std::int32_t length) {
    const std::int32_t pages = (length + page_size_ - 1) / page_size_;
    if (!token_.can_grow_to(pages) || !window_.can_grow_to(pages)) {
        return false;
    }
    token_.grow_to(pages);
    window_.grow_to(pages);
    return true;
}

void Sequence::commit(std::int32_t length) {
    MM_CHECK(length >= length_ && length <= token_.size() * page_size_, "length", length, "from", length_);
    length_ = length;
    const std::int32_t first_visible = std::max(length - window_size_ + 1, 0);  // to the query at `length`
    window_.drop_before(std::min(first_visible / page_size_, window_.size()));
}

}  // namespace megamoe::kv
