// Working memory of one rank's forward: float arrays that live until the next reset. Steady state allocates nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace megamoe::model {

class Scratch {
  public:
    // `count` floats, 64-byte aligned, uninitialised, valid until reset().
    float* take(std::int64_t count) {
        const std::int64_t need = (count + kAlign - 1) / kAlign * kAlign;
        while (block_ < blocks_.size() && blocks_[block_].size - used_ < need) {
            ++block_;
            used_ = 0;
        }
        if (block_ == blocks_.size()) {
            const std::int64_t size = std::max(need, kBlockFloats);
            blocks_.push_back({std::unique_ptr<Line[]>(new Line[static_cast<std::size_t>(size / kAlign)]), size});
        }
        float* out = blocks_[block_].lines[0].v + used_;
        used_ += need;
        return out;
    }

    void reset() {
        block_ = 0;
        used_ = 0;
    }

  private:
    static constexpr std::int64_t kAlign = 16;
    static constexpr std::int64_t kBlockFloats = std::int64_t{1} << 20;
    struct alignas(64) Line {
        float v[kAlign];
    };
    struct Block {
        std::unique_ptr<Line[]> lines;
        std::int64_t size;
    };
    std::vector<Block> blocks_;
    std::size_t block_ = 0;
    std::int64_t used_ = 0;
};

}  // namespace megamoe::model
