// The compute threads of one rank: a fixed team that runs index ranges. It does not queue: one loop at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace megamoe {

class Workers {
  public:
    // `num_threads` >= 1 counts the calling thread. Threads wait by spinning briefly, then sleeping.
    explicit Workers(std::int32_t num_threads);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    std::int32_t size() const { return num_threads_; }

    // Calls fn(i) once for every i in [0, count), in any order, on any thread of the team; returns when all have
    // returned.
    // Same    the callee must not let a result bit depend on which thread runs it
    // Thread  the owner of the team only; not re-entrant
    template <class Fn>
    void run(std::int64_t count, Fn&& fn) {
        if (num_threads_ == 1 || count <= 1) {
            for (std::int64_t i = 0; i < count; ++i) {
                fn(i);
            }
            return;
        }
        auto* object = std::addressof(fn);
        run_erased(
            count, [](void* f, std::int64_t i) { (*static_cast<decltype(object)>(f))(i); },
            const_cast<void*>(static_cast<const void*>(object)));
    }

  private:
    using Call = void (*)(void*, std::int64_t);
    void run_erased(std::int64_t count, Call call, void* object);

    struct Team;
    std::int32_t num_threads_;
    std::unique_ptr<Team> team_;
};

}  // namespace megamoe
