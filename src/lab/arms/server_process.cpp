#include "lab/arms/server_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "lab/client/http_call.h"
#include "lab/core/files.h"
#include "lab/core/interrupt.h"

extern char** environ;

namespace megamoe::lab {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr auto kPollEvery = std::chrono::milliseconds(50);

std::string describe_exit(int status) {
    if (WIFSIGNALED(status)) {
        return fmt::format("killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    }
    return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace

struct ServerProcess::State {
    pid_t pid = -1;
    std::optional<int> exit_status;  // as waitpid gives it
    std::string command;
    std::string log_path;

    bool reap(int flags) {
        if (exit_status) {
            return true;
        }
        int status = 0;
        pid_t got = 0;
        do {
            got = ::waitpid(pid, &status, flags);
        } while (got < 0 && errno == EINTR);
        if (got == pid) {
            exit_status = status;
        }
        return exit_status.has_value();
    }

    bool gone_within(std::int64_t limit_ms) {
        const std::int64_t deadline = now_ns() + limit_ms * kMs;
        while (!reap(WNOHANG)) {
            if (now_ns() >= deadline) {
                return false;
            }
            std::this_thread::sleep_for(kPollEvery);
        }
        return true;
    }
};

ServerProcess::ServerProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
ServerProcess::ServerProcess(ServerProcess&&) noexcept = default;

ServerProcess::~ServerProcess() {
    if (state_ != nullptr && !state_->exit_status) {
        (void)stop(0);
    }
}

Result<ServerProcess> ServerProcess::start(const std::vector<std::string>& argv, const std::string& log_path) {
    std::vector<char*> words;
    for (const std::string& word : argv) {
        words.push_back(const_cast<char*>(word.c_str()));  // posix_spawn does not write to them
    }
    words.push_back(nullptr);

    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    // A group of its own: Ctrl-C at the terminal must not reach it before us, and its children end with it.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    auto state = std::make_unique<State>();
    state->command = argv.front();
    state->log_path = log_path;
    const int failed = ::posix_spawnp(&state->pid, argv.front().c_str(), &files, &attributes, words.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (failed != 0) {
        return Error{Errc::kNotFound, fmt::format("cannot start {}: {}", argv.front(), std::strerror(failed)),
                     "check the program's path"};
    }
    return ServerProcess(std::move(state));
}

bool ServerProcess::is_running() {
    return !state_->reap(WNOHANG);
}

std::string ServerProcess::last_log_lines(int count) const {
    const auto log = read_file(state_->log_path);
    if (!log) {
        return {};
    }
    std::string text = log.value();
    while (text.ends_with('\n')) {
        text.pop_back();
    }
    std::size_t begin = text.size();
    for (int k = 0; k < count && begin != 0 && begin != std::string::npos; ++k) {
        begin = text.rfind('\n', begin - 1);
    }
    return begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
}

Result<Target> ServerProcess::wait_ready(std::int64_t timeout_ms, const std::function<void(double)>& on_wait) {
    constexpr int kShownLines = 12;
    const std::int64_t begin = now_ns();
    std::int64_t reported = begin;
    std::optional<Target> target;
    for (;;) {
        if (!is_running()) {
            return Error{Errc::kUnavailable,
                         fmt::format("{} died before it was ready: {}; its last words:\n{}", state_->command,
                                     describe_exit(*state_->exit_status), last_log_lines(kShownLines)),
                         "the whole log is " + state_->log_path};
        }
        if (!target) {
            const auto log = read_file(state_->log_path);
            auto found = log ? find_address(log.value()) : Result<Target>(log.error());
            if (found) {
                target = std::move(found).take();
            }
        }
        if (target) {
            const auto health = call(*target, {.endpoint = "/health", .timeout_ms = 1000});
            if (health && health.value().status == 200) {
                return *target;
            }
        }
        const std::int64_t now = now_ns();
        if (now - begin > timeout_ms * kMs || interrupted()) {
            return Error{Errc::kUnavailable,
                         interrupted() ? "interrupted"
                                       : fmt::format("{} was not ready after {} s; its last words:\n{}",
                                                     state_->command, timeout_ms / 1000, last_log_lines(kShownLines)),
                         "the whole log is " + state_->log_path};
        }
        if (on_wait && now - reported > 1000 * kMs) {
            reported = now;
            on_wait(static_cast<double>(now - begin) / 1e9);
        }
        std::this_thread::sleep_for(kPollEvery);
    }
}

Result<Done> ServerProcess::stop(std::int64_t grace_ms) {
    const bool died_before = state_->reap(WNOHANG);
    bool killed = false;
    if (!died_before) {
        ::kill(-state_->pid, SIGTERM);
        if (!state_->gone_within(grace_ms)) {
            killed = true;
            ::kill(-state_->pid, SIGKILL);
            state_->reap(0);
        }
    }
    if (killed) {
        return Error{Errc::kUnavailable,
                     fmt::format("{} did not end {} ms after SIGTERM and was killed", state_->command, grace_ms),
                     "its log is " + state_->log_path};
    }
    if (died_before || *state_->exit_status != 0) {
        return Error{Errc::kUnavailable,
                     fmt::format("{} {}: {}", state_->command, died_before ? "died on its own" : "ended badly",
                                 describe_exit(*state_->exit_status)),
                     "its log is " + state_->log_path};
    }
    return Done{};
}

Result<Target> find_address(std::string_view log) {
    constexpr std::string_view kScheme = "http://";
    for (std::size_t at = log.find(kScheme); at != std::string_view::npos; at = log.find(kScheme, at + 1)) {
        const std::string_view rest = log.substr(at);
        const std::size_t colon = rest.find(':', rest.starts_with("http://[") ? rest.find(']') : kScheme.size());
        if (colon == std::string_view::npos) {
            break;
        }
        std::size_t end = colon + 1;
        while (end < rest.size() && std::isdigit(static_cast<unsigned char>(rest[end])) != 0) {
            ++end;
        }
        // A port cut off by the end of the log may have more digits to come.
        if (end == colon + 1 || end == rest.size()) {
            continue;
        }
        auto target = parse_base_url(std::string(rest.substr(0, end)));
        if (target) {
            Target found = std::move(target).take();
            if (found.host == "0.0.0.0") {
                found.host = "127.0.0.1";
            }
            return found;
        }
    }
    return Error{Errc::kNotFound, "no http://host:port in the log", ""};
}

}  // namespace megamoe::lab
