#include "lab/core/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace megamoe::lab {
namespace fs = std::filesystem;

Result<std::string> read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream content;
    if (file) {
        content << file.rdbuf();
    }
    if (!file || !fs::is_regular_file(path)) {
        return Error{Errc::kNotFound, "cannot read " + path, "check the path and its permissions"};
    }
    return std::move(content).str();
}

Result<Done> write_file(const std::string& path, std::string_view content) {
    const std::string part = path + ".part";
    const auto failed = [&](const char* step) {
        return Error{Errc::kInternal, "cannot " + std::string(step) + " " + part + ": " + std::strerror(errno),
                     "check the folder, its permissions and the free disk space"};
    };
    const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) {
        return failed("create");
    }
    while (!content.empty()) {
        const ssize_t wrote = ::write(file, content.data(), content.size());
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            const Error error = failed("write");
            ::close(file);
            return error;
        }
        content.remove_prefix(static_cast<std::size_t>(wrote));
    }
    const bool synced = ::fsync(file) == 0;
    if (::close(file) != 0 || !synced) {
        return failed("flush");
    }
    if (std::rename(part.c_str(), path.c_str()) != 0) {
        return failed("rename");
    }
    return Done{};
}

Result<Done> make_empty_folder(const std::string& path) {
    std::error_code code;
    fs::create_directories(path, code);
    if (code || !fs::is_directory(path)) {
        return invalid("cannot make folder " + path + ": " + code.message(), "choose another --output-dir");
    }
    if (!fs::is_empty(path, code)) {
        return Error{Errc::kFailedPrecondition, "folder " + path + " is not empty",
                     "results are never overwritten: choose a new --output-dir or remove the old one"};
    }
    return Done{};
}

}  // namespace megamoe::lab
