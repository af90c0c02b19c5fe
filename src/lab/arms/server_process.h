// A server as a child process: started, watched until it is ready, stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/client/target.h"

namespace megamoe::lab {

class ServerProcess {
  public:
    // Starts argv[0] (looked up in PATH unless it has a slash) in a process group of its own, stdout and stderr to
    // `log_path`.
    // Error kNotFound: it cannot be started
    [[nodiscard]] static Result<ServerProcess> start(const std::vector<std::string>& argv, const std::string& log_path);
    ServerProcess(ServerProcess&&) noexcept;
    ~ServerProcess();  // stop(0)

    // Waits until the address it logs answers /health with 200; calls `on_wait` about once a second.
    // Error kUnavailable: it died (with its last log lines), was not ready in time, or Ctrl-C
    [[nodiscard]] Result<Target> wait_ready(std::int64_t timeout_ms,
                                            const std::function<void(double seconds)>& on_wait);

    // Also notices a death. Thread: the owner.
    bool is_running();

    // SIGTERM to the group, and SIGKILL when it has not gone after `grace_ms`. Idempotent.
    // Error kUnavailable: it had died before, ended with a code other than 0, or had to be killed
    [[nodiscard]] Result<Done> stop(std::int64_t grace_ms);

    std::string last_log_lines(int count) const;

  private:
    struct State;
    explicit ServerProcess(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// The first http://host:port in a server's log, as an address a client on this machine can use (0.0.0.0 becomes
// 127.0.0.1).
// Error kNotFound: none is there (yet)
[[nodiscard]] Result<Target> find_address(std::string_view log);

}  // namespace megamoe::lab
