#include "lab/core/interrupt.h"

#include <signal.h>

#include <csignal>

namespace megamoe::lab {
namespace {

volatile std::sig_atomic_t raised = 0;
int living_guards = 0;
struct sigaction former_int;
struct sigaction former_term;

void raise_flag(int) {
    raised = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
    if (living_guards++ > 0) {
        return;
    }
    raised = 0;
    struct sigaction action {};
    action.sa_handler = raise_flag;
    action.sa_flags = SA_RESETHAND;  // the second signal has its usual effect
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &former_int);
    sigaction(SIGTERM, &action, &former_term);
}

InterruptGuard::~InterruptGuard() {
    if (--living_guards > 0) {
        return;
    }
    sigaction(SIGINT, &former_int, nullptr);
    sigaction(SIGTERM, &former_term, nullptr);
}

bool interrupted() {
    return raised != 0;
}

}  // namespace megamoe::lab
