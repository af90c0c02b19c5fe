// Memory that every rank owns one block of, all of the same size, and every rank can address.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "comm/rank_group.h"

namespace megamoe::comm {

// The blocks of one allocation, seen from any rank. Plain pointers: the heap owns the memory.
class SymmetricBlock {
  public:
    std::byte* at(RankId rank) const { return base_[static_cast<std::size_t>(raw(rank))]; }
    template <class T>
    T* as(RankId rank, std::int64_t byte_offset = 0) const {
        return reinterpret_cast<T*>(at(rank) + byte_offset);
    }
    std::int64_t bytes() const { return bytes_; }  // of one rank's block
    // The same part of every rank's block.
    // In    0 <= byte_offset, byte_offset + bytes <= bytes()
    SymmetricBlock part(std::int64_t byte_offset, std::int64_t bytes) const;

  private:
    friend class SymmetricHeap;
    std::array<std::byte*, kMaxRanks> base_{};
    std::int64_t bytes_ = 0;
};

// Lives longer than all rank threads, so a rank that leaves early never takes memory from under its peers.
class SymmetricHeap {
  public:
    SymmetricHeap() = default;
    SymmetricHeap(const SymmetricHeap&) = delete;
    SymmetricHeap& operator=(const SymmetricHeap&) = delete;

    // Collective: every rank gives the same `bytes` >= 0 and gets the same table. Blocks are 64-byte aligned, zero, and
    // live as long as the heap.
    //
    // Error  kInternal: sizes differ between ranks (all are named); kResourceExhausted: no memory; else as all_gather
    // Thread the calling rank's
    [[nodiscard]] Result<SymmetricBlock> allocate(const RankContext& context, CollectiveName name, std::int64_t bytes);

  private:
    struct Free {
        void operator()(std::byte* block) const;
    };
    std::mutex mutex_;
    std::vector<std::unique_ptr<std::byte, Free>> blocks_;
};

}  // namespace megamoe::comm
