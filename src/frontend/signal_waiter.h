// Waits for SIGINT and SIGTERM in an ordinary thread, together with news from other threads.
#pragma once

#include <cstdint>
#include <memory>

namespace megamoe::frontend {

// While it lives the two signals do not end the process.
class SignalWaiter {
  public:
    enum class Wake { kSignal, kNotified, kTimeout };

    SignalWaiter();
    ~SignalWaiter();

    // Each signal and each notify() ends one wait(), also if it came before.
    Wake wait(std::int64_t timeout_ms);
    // Thread any
    void notify();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace megamoe::frontend
