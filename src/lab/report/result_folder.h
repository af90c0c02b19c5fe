// The folder of one run's evidence: every file complete or absent, listed with its hash, read-only when sealed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace megamoe::lab {

class ResultFolder {
  public:
    // Error kFailedPrecondition: the folder holds something; kInvalidArgument: it cannot be made
    [[nodiscard]] static Result<ResultFolder> create(const std::string& path);

    // In    name  may hold one sub-folder: "server/server_info.json"
    [[nodiscard]] Result<Done> add(const std::string& name, std::string_view content);

    // Writes SHA256SUMS (as sha256sum -c reads it) over everything added and takes the write permission away.
    [[nodiscard]] Result<Done> seal();

    const std::string& path() const { return path_; }

  private:
    explicit ResultFolder(std::string path) : path_(std::move(path)) {}

    std::string path_;
    std::vector<std::string> sums_;  // "hash  name"
};

}  // namespace megamoe::lab
