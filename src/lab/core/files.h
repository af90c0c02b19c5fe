// Whole files, and files that appear only when complete.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace megamoe::lab {

// Error kNotFound
[[nodiscard]] Result<std::string> read_file(const std::string& path);

// Writes `path`.part, flushes it to the disk and renames it, so that a reader never sees half a file.
// Error kInternal: disk or permissions
[[nodiscard]] Result<Done> write_file(const std::string& path, std::string_view content);

// Makes `path` a folder that holds nothing yet, with its parents.
// Error kFailedPrecondition: it holds something; kInvalidArgument: cannot be made
[[nodiscard]] Result<Done> make_empty_folder(const std::string& path);

}  // namespace megamoe::lab
