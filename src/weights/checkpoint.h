// The tensors of a checkpoint folder by name, mapped from its safetensors files. It does not interpret them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace megamoe::weights {

enum class Dtype : std::uint8_t {
    kF64,
    kF32,
    kF16,
    kBf16,
    kI64,
    kI32,
    kI16,
    kI8,
    kU8,
    kBool,
    kF8E4m3,
    kF8E5m2,
    kF8E8m0,
    kF4
};

std::string_view name(Dtype dtype);  // as safetensors spells it: "F32", "F8_E4M3"

struct Tensor {
    Dtype dtype{};
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes;  // into the mapping; not necessarily aligned
    std::int32_t file_idx = 0;         // which file of Checkpoint::files()
};

class Checkpoint {
  public:
    // Opens DIR/model.safetensors.index.json with its shards, or DIR/model.safetensors.
    // Error kNotFound: no such folder or file. kInvalidArgument: a file is truncated, its header is no JSON or too
    //       large, a tensor's bytes leave the file, overlap another's or do not fit shape x dtype, a name stands twice,
    //       the index names a tensor that its shard lacks (or the reverse) or a shard outside the folder, an unknown
    //       dtype. The text names file, tensor and numbers. Gaps and bytes after the last tensor are allowed.
    // Owns  the mappings; Tensor::bytes live as long as the Checkpoint
    [[nodiscard]] static Result<std::shared_ptr<const Checkpoint>> open(const std::string& dir);
    // One file, whatever its name (golden dumps).
    [[nodiscard]] static Result<std::shared_ptr<const Checkpoint>> open_file(const std::string& path);
    ~Checkpoint();

    const Tensor* find(std::string_view name) const;  // null: absent
    const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }
    const std::vector<std::string>& files() const { return files_; }

  private:
    struct Mapping;
    Checkpoint() = default;
    [[nodiscard]] Result<std::vector<std::string>> add_file(const std::string& path);  // names of its tensors
    [[nodiscard]] Result<Done> add_shards(const std::string& dir, const std::string& index_path);

    std::map<std::string, Tensor, std::less<>> tensors_;
    std::vector<std::string> files_;
    std::vector<std::unique_ptr<Mapping>> mappings_;
};

}  // namespace megamoe::weights
