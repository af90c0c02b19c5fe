#include "weights/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "weights/safetensors_header.h"

namespace megamoe::weights {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little endian and mapped as it is");

constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

Error in_file(const std::string& path, const Error& error) {
    return {error.code, fmt::format("{}: {}", path, error.what), error.hint};
}

}  // namespace

struct Checkpoint::Mapping {
    const std::byte* data = nullptr;
    std::int64_t size = 0;

    Mapping() = default;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() {
        if (data != nullptr) {
            ::munmap(const_cast<std::byte*>(data), static_cast<std::size_t>(size));
        }
    }

    static Result<std::unique_ptr<Mapping>> open(const std::string& path) {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            const Errc code = errno == ENOENT || errno == ENOTDIR ? Errc::kNotFound : Errc::kInvalidArgument;
            return Error{code, fmt::format("{}: {}", path, std::strerror(errno)), {}};
        }
        auto mapping = std::make_unique<Mapping>();
        const bool mapped = mapping->map(fd);
        const int map_errno = errno;
        ::close(fd);
        if (!mapped) {
            return invalid(fmt::format("{}: {}", path, std::strerror(map_errno)));
        }
        return mapping;
    }

  private:
    bool map(int fd) {
        struct stat status {};
        if (::fstat(fd, &status) != 0) {
            return false;
        }
        if (!S_ISREG(status.st_mode)) {
            errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
            return false;
        }
        size = status.st_size;
        if (size == 0) {
            return true;  // an empty range cannot be mapped; the header check refuses it
        }
        void* address = ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_PRIVATE, fd, 0);
        if (address == MAP_FAILED) {
            return false;
        }
        data = static_cast<const std::byte*>(address);
        return true;
    }
};

Checkpoint::~Checkpoint() = default;

Result<std::vector<std::string>> Checkpoint::add_file(const std::string& path) {
    MM_TRY(auto mapping, Mapping::open(path));
    if (mapping->size < kLengthBytes) {
        return invalid(fmt::format("{}: {} bytes are too few for a safetensors file", path, mapping->size));
    }
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, mapping->data, sizeof(header_bytes));
    const std::int64_t limit = std::min(kMaxHeaderBytes, mapping->size - kLengthBytes);
    if (header_bytes > static_cast<std::uint64_t>(limit)) {
        return invalid(
            fmt::format("{}: the header should have {} bytes, more than the {} possible", path, header_bytes, limit),
            "the file is truncated or no safetensors file");
    }
    const auto header_size = static_cast<std::int64_t>(header_bytes);
    const std::string_view header(reinterpret_cast<const char*>(mapping->data) + kLengthBytes, header_bytes);
    const std::byte* data = mapping->data + kLengthBytes + header_size;
    auto entries = parse_safetensors_header(header, mapping->size - kLengthBytes - header_size);
    if (!entries) {
        return in_file(path, entries.error());
    }
    std::vector<std::string> names;
    const auto file_idx = static_cast<std::int32_t>(files_.size());
    for (HeaderEntry& entry : entries.value()) {
        const std::span bytes(data + entry.begin, static_cast<std::size_t>(entry.end - entry.begin));
        const auto [at, is_new] =
            tensors_.try_emplace(entry.name, Tensor{entry.dtype, std::move(entry.shape), bytes, file_idx});
        if (!is_new) {
            return invalid(fmt::format("{}: tensor {} is also in {}", path, entry.name,
                                       files_[static_cast<std::size_t>(at->second.file_idx)]));
        }
        names.push_back(std::move(entry.name));
    }
    files_.push_back(path);
    mappings_.push_back(std::move(mapping));
    return names;
}

Result<Done> Checkpoint::add_shards(const std::string& dir, const std::string& index_path) {
    MM_TRY(const auto index_file, Mapping::open(index_path));
    const std::string_view text(reinterpret_cast<const char*>(index_file->data),
                                static_cast<std::size_t>(index_file->size));
    auto index = parse_shard_index(text);
    if (!index) {
        return in_file(index_path, index.error());
    }
    std::set<std::string> shards;
    for (const auto& [name, file] : index.value()) {
        shards.insert(file);
    }
    for (const std::string& shard : shards) {
        const std::string path = dir + "/" + shard;
        auto names = add_file(path);
        if (!names) {
            Error error = names.error();
            if (error.code == Errc::kNotFound) {
                error.hint = fmt::format("{} names this shard: is the download complete?", kIndexFile);
            }
            return error;
        }
        for (const std::string& name : names.value()) {
            const auto placed = index.value().find(name);
            if (placed == index.value().end() || placed->second != shard) {
                return invalid(
                    fmt::format("{}: holds tensor {}, which {} {}", path, name, kIndexFile,
                                placed == index.value().end() ? "does not name" : "places in " + placed->second));
            }
        }
    }
    for (const auto& [name, file] : index.value()) {
        if (find(name) == nullptr) {
            return invalid(fmt::format("{}/{}: lacks tensor {}, which {} places there", dir, file, name, kIndexFile));
        }
    }
    return Done{};
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open(const std::string& dir) {
    std::error_code ignored;  // a file that cannot be looked at fails again below, with its reason
    const std::string index_path = dir + "/" + kIndexFile;
    if (std::filesystem::exists(index_path, ignored)) {
        std::shared_ptr<Checkpoint> checkpoint(new Checkpoint);
        MM_TRY_DONE(checkpoint->add_shards(dir, index_path));
        return std::shared_ptr<const Checkpoint>(std::move(checkpoint));
    }
    auto checkpoint = open_file(dir + "/" + kSingleFile);
    if (!checkpoint && checkpoint.error().code == Errc::kNotFound) {
        return Error{Errc::kNotFound, fmt::format("{}: has neither {} nor {}", dir, kIndexFile, kSingleFile),
                     "give the folder that holds config.json and the safetensors files"};
    }
    return checkpoint;
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open_file(const std::string& path) {
    std::shared_ptr<Checkpoint> checkpoint(new Checkpoint);
    MM_TRY_DONE(checkpoint->add_file(path));
    return std::shared_ptr<const Checkpoint>(std::move(checkpoint));
}

const Tensor* Checkpoint::find(std::string_view name) const {
    const auto it = tensors_.find(name);
    return it == tensors_.end() ? nullptr : &it->second;
}

}  // namespace megamoe::weights
