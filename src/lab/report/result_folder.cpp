#include "lab/report/result_folder.h"

#include <filesystem>
#include <system_error>

#include "lab/core/files.h"
#include "lab/core/sha256.h"

namespace megamoe::lab {
namespace fs = std::filesystem;

Result<ResultFolder> ResultFolder::create(const std::string& path) {
    MM_TRY_DONE(make_empty_folder(path));
    return ResultFolder(path);
}

Result<Done> ResultFolder::add(const std::string& name, std::string_view content) {
    const fs::path file = fs::path(path_) / name;
    std::error_code ignored;  // write_file reports what matters
    fs::create_directories(file.parent_path(), ignored);
    MM_TRY_DONE(write_file(file.string(), content));
    sums_.push_back(sha256_hex(content) + "  " + name);
    return Done{};
}

Result<Done> ResultFolder::seal() {
    std::string list;
    for (const std::string& sum : sums_) {
        list += sum + "\n";
    }
    MM_TRY_DONE(write_file(path_ + "/SHA256SUMS", list));
    constexpr auto kWrite = fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
    std::error_code ignored;  // a file system without permissions is no reason to lose a result
    for (const auto& entry : fs::recursive_directory_iterator(path_, ignored)) {
        if (entry.is_regular_file(ignored)) {
            fs::permissions(entry.path(), kWrite, fs::perm_options::remove, ignored);
        }
    }
    return Done{};
}

}  // namespace megamoe::lab
