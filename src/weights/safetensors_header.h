// The JSON parts of the safetensors format, read with every check that needs no file: header and shard index.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/checkpoint.h"

namespace megamoe::weights {

struct HeaderEntry {
    std::string name;
    Dtype dtype{};
    std::vector<std::int64_t> shape;
    std::int64_t begin = 0;  // bytes after the header
    std::int64_t end = 0;
};

// Bytes of a tensor; nothing if a size is negative, the product does not fit 63 bits, or it ends inside a byte (F4).
std::optional<std::int64_t> tensor_bytes(Dtype dtype, std::span<const std::int64_t> shape);

// "[2,3]", as in the header.
std::string format_shape(std::span<const std::int64_t> shape);

// In    text        a header without its length field; may be padded with spaces
//       data_bytes  how many bytes follow the header in the file
// Out   entries in the order of their bytes; `__metadata__` is left out. Gaps between tensors are allowed
// Error kInvalidArgument: see Checkpoint::open. The text names tensor and numbers; the caller adds the file
[[nodiscard]] Result<std::vector<HeaderEntry>> parse_safetensors_header(std::string_view text, std::int64_t data_bytes);

// Tensor name -> file name, from the text of model.safetensors.index.json.
// Error kInvalidArgument: not JSON, no weight_map of strings, a name twice, a file name that leaves the folder
[[nodiscard]] Result<std::map<std::string, std::string>> parse_shard_index(std::string_view text);

}  // namespace megamoe::weights
