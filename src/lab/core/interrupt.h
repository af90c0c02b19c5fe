// Ctrl-C as a flag that long work looks at.
#pragma once

namespace megamoe::lab {

// While one lives, SIGINT and SIGTERM only raise the flag; the former handlers come back afterwards. A second signal
// ends the process at once, as a user who presses twice expects.
class InterruptGuard {
  public:
    InterruptGuard();
    ~InterruptGuard();
    InterruptGuard(const InterruptGuard&) = delete;
    InterruptGuard& operator=(const InterruptGuard&) = delete;
};

// Whether a signal came since the first living guard was made. Thread: any.
bool interrupted();

}  // namespace megamoe::lab
