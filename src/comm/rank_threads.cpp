#include "comm/rank_threads.h"

#include <exception>

#include "base/log.h"

namespace megamoe::comm {
namespace {

Result<Done> call_main(const RankMain& main, const RankContext& context) {
    try {
        return main(context);
    } catch (const std::exception& e) {
        return Error{Errc::kInternal, std::string("uncaught exception: ") + e.what(), {}};
    }
}

}  // namespace

RankThreads::RankThreads(RankGroup& group, SymmetricHeap& heap, RankMain main) {
    for (std::int32_t r = 0; r < group.size(); ++r) {
        threads_.emplace_back([&group, &heap, main, r] {
            log::set_rank(r);
            const RankContext context{.rank = RankId{r}, .size = group.size(), .group = group, .heap = heap};
            if (const Result<Done> result = call_main(main, context); !result) {
                group.poison(context.rank, result.error());
            }
        });
    }
}

RankThreads::~RankThreads() {
    join();
}

void RankThreads::join() {
    for (std::thread& thread : threads_) {
        if (thread.joinable()) {
            thread.join();
        }
    }
}

Result<Done> run_ranks(RankGroup& group, SymmetricHeap& heap, const RankMain& main) {
    RankThreads(group, heap, main).join();
    if (std::optional<Error> failure = group.failure()) {
        return *std::move(failure);
    }
    return Done{};
}

}  // namespace megamoe::comm
