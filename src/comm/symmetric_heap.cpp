#include "comm/symmetric_heap.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>

#include "base/check.h"

namespace megamoe::comm {
namespace {

constexpr std::int64_t kAlignment = 64;

std::byte* allocate_zeroed(std::int64_t bytes) {
    const auto rounded = static_cast<std::size_t>((bytes + kAlignment) / kAlignment * kAlignment);  // never 0
    void* block = std::aligned_alloc(kAlignment, rounded);
    if (block != nullptr) {
        std::memset(block, 0, rounded);  // first touch: pages come from the owner's memory node
    }
    return static_cast<std::byte*>(block);
}

}  // namespace

SymmetricBlock SymmetricBlock::part(std::int64_t byte_offset, std::int64_t bytes) const {
    MM_CHECK(byte_offset >= 0 && bytes >= 0 && byte_offset + bytes <= bytes_, byte_offset, bytes, bytes_);
    SymmetricBlock part;
    part.bytes_ = bytes;
    for (std::size_t r = 0; r < base_.size() && base_[r] != nullptr; ++r) {
        part.base_[r] = base_[r] + byte_offset;
    }
    return part;
}

void SymmetricHeap::Free::operator()(std::byte* block) const {
    std::free(block);
}

Result<SymmetricBlock> SymmetricHeap::allocate(const RankContext& context, CollectiveName name, std::int64_t bytes) {
    std::byte* mine = allocate_zeroed(bytes);
    if (mine != nullptr) {
        const std::lock_guard lock(mutex_);
        blocks_.emplace_back(mine);
    }
    const std::array<std::int64_t, 2> words{bytes, reinterpret_cast<std::int64_t>(mine)};
    std::vector<std::int64_t> all(2 * static_cast<std::size_t>(context.size));
    MM_TRY_DONE(context.all_gather(name, words, all));

    SymmetricBlock table;
    table.bytes_ = bytes;
    std::vector<std::int64_t> sizes;
    bool equal = true;
    for (std::size_t r = 0; r < static_cast<std::size_t>(context.size); ++r) {
        sizes.push_back(all[2 * r]);
        equal = equal && all[2 * r] == bytes;
        table.base_[r] = reinterpret_cast<std::byte*>(all[2 * r + 1]);
    }
    if (!equal) {
        return Error{Errc::kInternal,
                     fmt::format("symmetric block \"{}\": sizes differ between ranks: {} bytes", name.text,
                                 fmt::join(sizes, ", ")),
                     {}};
    }
    for (std::int32_t r = 0; r < context.size; ++r) {
        if (table.at(RankId{r}) == nullptr) {
            return Error{
                Errc::kResourceExhausted,
                fmt::format("symmetric block \"{}\": rank {} found no memory for {} bytes", name.text, r, bytes),
                {}};
        }
    }
    return table;
}

}  // namespace megamoe::comm
