#include "model/golden_tensors.h"

#include <cstring>

namespace megamoe::model {
namespace {

template <class From, class To>
std::vector<To> convert(std::span<const std::byte> bytes) {
    std::vector<To> out(bytes.size() / sizeof(From));
    for (std::size_t i = 0; i < out.size(); ++i) {
        From value{};
        std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
        out[i] = static_cast<To>(value);
    }
    return out;
}

Result<const weights::Tensor*> find(const weights::Checkpoint& file, std::string_view name) {
    if (const auto* tensor = file.find(name)) {
        return tensor;
    }
    return Error{Errc::kNotFound, "reference tensor " + std::string(name) + " is missing",
                 "make the golden file again"};
}

}  // namespace

Result<std::vector<float>> read_floats(const weights::Checkpoint& file, std::string_view name) {
    MM_TRY(const auto* tensor, find(file, name));
    if (tensor->dtype != weights::Dtype::kF32) {
        return invalid("reference tensor " + std::string(name) + " is " + std::string(weights::name(tensor->dtype)) +
                       ", expected F32");
    }
    return convert<float, float>(tensor->bytes);
}

Result<std::vector<std::int32_t>> read_ids(const weights::Checkpoint& file, std::string_view name) {
    MM_TRY(const auto* tensor, find(file, name));
    switch (tensor->dtype) {
        case weights::Dtype::kI32:
            return convert<std::int32_t, std::int32_t>(tensor->bytes);
        case weights::Dtype::kI64:
            return convert<std::int64_t, std::int32_t>(tensor->bytes);
        default:
            return invalid("reference tensor " + std::string(name) + " is " +
                           std::string(weights::name(tensor->dtype)) + ", expected I32 or I64");
    }
}

void DumpTap::floats(std::int32_t layer, std::string_view name, const float* data, std::int64_t rows,
                     std::int64_t cols) {
    dumps_["layer" + std::to_string(layer) + "." + std::string(name)].assign(data, data + rows * cols);
}

void DumpTap::experts(std::int32_t layer, const std::int32_t* ids, std::int64_t rows, std::int64_t top_k) {
    expert_ids_[layer].assign(ids, ids + rows * top_k);
}

void DumpTap::attention(std::int32_t layer, std::int64_t row, std::int32_t first_window, std::int32_t window,
                        std::span<const std::int32_t> entries, const float* weights) {
    const std::lock_guard lock(mutex_);
    const std::int32_t ratio = geometry_.ratios[static_cast<std::size_t>(layer)];
    const std::int64_t columns = num_tokens_ + (ratio > 0 ? num_tokens_ / ratio : 0);
    auto& all = dumps_["layer" + std::to_string(layer) + ".attn.1"];
    all.resize(static_cast<std::size_t>(geometry_.num_heads) * static_cast<std::size_t>(num_tokens_) *
               static_cast<std::size_t>(columns));
    for (std::int64_t head = 0; head < geometry_.num_heads; ++head) {
        float* to = all.data() + (head * num_tokens_ + row) * columns;
        for (std::int32_t i = 0; i < window; ++i) {
            to[first_window + i] = *weights++;
        }
        for (const std::int32_t entry : entries) {
            to[num_tokens_ + entry] = *weights++;
        }
    }
}

}  // namespace megamoe::model
