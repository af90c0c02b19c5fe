// One safetensors file, written front to back from bytes that the caller makes piece by piece. It never holds a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "weights/checkpoint.h"

namespace megamoe::weights {

struct TensorPlan {
    std::string name;
    Dtype dtype{};
    std::vector<std::int64_t> shape;
};

class SafetensorsWriter {
  public:
    // Makes `path` (or empties it) and writes the header for `plans`, whose bytes follow in this order, without gaps.
    // NOTE: a reader's tensors are aligned to their element size only if plans with wider elements come first.
    // Error kInvalidArgument: `path` cannot be made, a shape is impossible. kResourceExhausted: the disk is full
    [[nodiscard]] static Result<SafetensorsWriter> create(const std::string& path, std::span<const TensorPlan> plans);

    // The next bytes of the file, of any count.
    // Error kResourceExhausted: the disk is full
    [[nodiscard]] Result<Done> append(std::span<const std::byte> bytes);

    // Closes the file. Call it once; all planned bytes must have been appended.
    // Error kResourceExhausted: the disk is full
    [[nodiscard]] Result<Done> finish();

  private:
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    using File = std::unique_ptr<std::FILE, Close>;

    SafetensorsWriter(std::string path, File file, std::int64_t bytes_left)
        : path_(std::move(path)), file_(std::move(file)), bytes_left_(bytes_left) {}

    std::string path_;
    File file_;
    std::int64_t bytes_left_;
};

}  // namespace megamoe::weights
