// Who I am and where everybody's memory is. A parameter of all protocol code, never a global: that lets several ranks
// run in one launch on one device, as threads of one process, or on a device each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/mega/layout.h"

namespace megamoe::mega {

struct RankView {
    std::int32_t rank = 0;
    std::byte* const* heap = nullptr;  // [R] base of every rank's heap, addressable from here; ours is heap[rank]

    template <class T>
    MM_HD T* at(std::int32_t peer, std::int64_t offset) const {
        return reinterpret_cast<T*>(heap[peer] + offset);
    }
    template <class T>
    MM_HD T* mine(std::int64_t offset) const {
        return at<T>(rank, offset);
    }
};

}  // namespace megamoe::mega
