// Where the time of one forward() goes on one rank. Always on: a forward reads the clock about ten times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace megamoe::moe {

enum class Stage : std::uint8_t {
    kDispatch,  // quantise rows, publish them and their experts
    kWait,      // for other ranks
    kPull,      // fetch and pack rows, where that is not part of kExperts
    kExperts,   // routed products
    kReturn,    // results to their sources, where that is not part of kExperts
    kShared,    // the shared expert
    kCombine,   // sum at home
};
inline constexpr std::array kStageNames{"dispatch", "wait", "pull", "experts", "return", "shared", "combine"};

using StageTimes = std::array<std::int64_t, kStageNames.size()>;  // ns, by Stage

// Splits the time since start() among the stages: each lap belongs to one.
class StageClock {
  public:
    void start() {
        times_ = {};
        last_ = now_ns();
    }
    void lap(Stage stage) {
        const std::int64_t now = now_ns();
        times_[static_cast<std::size_t>(stage)] += now - last_;
        last_ = now;
    }
    const StageTimes& times() const { return times_; }

  private:
    StageTimes times_{};
    std::int64_t last_ = 0;
};

}  // namespace megamoe::moe
