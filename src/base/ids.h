// Ids that must not mix. `raw()` is for indexing only.
#pragma once

#include <cstdint>
#include <type_traits>

namespace megamoe {

enum class ExpertId : std::int32_t {};  // logical expert, as the checkpoint numbers it
enum class SlotId : std::int32_t {};    // physical place, rank * slots_per_rank + local
enum class RankId : std::int32_t {};
enum class RequestId : std::uint64_t {};

template <class Id>
constexpr auto raw(Id id) {
    return static_cast<std::underlying_type_t<Id>>(id);
}

}  // namespace megamoe
