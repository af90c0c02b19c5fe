// One thread a rank, running the same function. A rank that returns an error poisons the group on its way out.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "comm/rank_group.h"
#include "comm/symmetric_heap.h"

namespace megamoe::comm {

using RankMain = std::function<Result<Done>(const RankContext&)>;

class RankThreads {
  public:
    // Starts group.size() threads; their log lines carry the rank. `group` and `heap` must outlive this object.
    RankThreads(RankGroup& group, SymmetricHeap& heap, RankMain main);
    ~RankThreads();  // join()
    RankThreads(const RankThreads&) = delete;
    RankThreads& operator=(const RankThreads&) = delete;

    // Waits for all ranks to return. Idempotent.
    void join();

  private:
    std::vector<std::thread> threads_;
};

// Runs `main` on every rank and joins: for tests and tools. Error: that of the group.
[[nodiscard]] Result<Done> run_ranks(RankGroup& group, SymmetricHeap& heap, const RankMain& main);

}  // namespace megamoe::comm
