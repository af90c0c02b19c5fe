#include "weights/weight_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "compute/ops/formats.h"
#include "weights/safetensors_header.h"

namespace megamoe::weights {
namespace {

using ops::WeightFormat;

constexpr std::int64_t kBlock = 128;  // FP8: rows and columns that share a scale
constexpr std::int64_t kGroup = 32;   // FP4: columns that share a scale
constexpr std::size_t kMaxListed = 10;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

// The format that a matrix of this dtype is in.
std::optional<WeightFormat> format_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::kI8:
        case Dtype::kU8:
        case Dtype::kF4:
            return WeightFormat::kFp4;
        case Dtype::kF8E4m3:
            return WeightFormat::kFp8;
        case Dtype::kBf16:
            return WeightFormat::kBf16;
        case Dtype::kF32:
            return WeightFormat::kF32;
        default:
            return std::nullopt;
    }
}

// What a tensor of the schema may come as. Dequantised checkpoints load too; what the model keeps in float32 stays so.
bool allowed(Storage storage, WeightFormat format) {
    switch (storage) {
        case Storage::kFp4:
            return true;
        case Storage::kFp8:
            return format != WeightFormat::kFp4;
        case Storage::kBf16:
            return format == WeightFormat::kBf16 || format == WeightFormat::kF32;
        default:
            return format == WeightFormat::kF32;
    }
}

std::string_view allowed_dtypes(Storage storage) {
    switch (storage) {
        case Storage::kFp4:
            return "packed FP4 (I8, U8 or F4), F8_E4M3, BF16 or F32";
        case Storage::kFp8:
            return "F8_E4M3, BF16 or F32";
        case Storage::kBf16:
            return "BF16 or F32";
        default:
            return "F32";
    }
}

std::int64_t row_bytes(WeightFormat format, std::int64_t cols) {
    switch (format) {
        case WeightFormat::kFp4:
            return cols / 2;
        case WeightFormat::kFp8:
            return cols;
        case WeightFormat::kBf16:
            return cols * 2;
        default:
            return cols * 4;
    }
}

template <class T>
T read_at(std::span<const std::byte> bytes, std::size_t index) {
    T value;
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
}

std::string list_first(const std::vector<std::string>& texts, std::string_view separator) {
    const std::size_t count = std::min(texts.size(), kMaxListed);
    std::string list;
    for (std::size_t i = 0; i < count; ++i) {
        list.append(i == 0 ? "" : separator).append(texts[i]);
    }
    return texts.size() > count ? fmt::format("{}{}and {} more", list, separator, texts.size() - count) : list;
}

}  // namespace

WeightLoader::WeightLoader(const Checkpoint& checkpoint, const ModelGeometry& geometry)
    : checkpoint_(checkpoint), geometry_(geometry) {
    for (const auto& [name, tensor] : checkpoint.tensors()) {
        std::string released = released_name(name);
        if (weight_kind(released) == WeightKind::kMtp) {
            ++num_mtp_;
            continue;
        }
        const auto [at, is_new] = found_.try_emplace(std::move(released), Found{&name, &tensor});
        if (!is_new) {
            add_problem({&name, &tensor}, fmt::format("is the same weight as {}", *at->second.file_name));
        }
    }
}

void WeightLoader::matrix(const TensorSpec& spec, ops::MatrixView& into) {
    if (const auto stack = check_stack(spec)) {
        into = view(*stack, 0, 0, stack->rows);
    }
}

void WeightLoader::vector(const TensorSpec& spec, FloatVector& into) {
    const Found* found = use(spec.name);
    if (found == nullptr || !check_shape(*found, spec.shape)) {
        return;
    }
    const Tensor& tensor = *found->tensor;
    if (tensor.dtype != Dtype::kF32 && tensor.dtype != Dtype::kBf16) {
        add_problem(*found, fmt::format("has dtype {}, expected BF16 or F32", name(tensor.dtype)));
        return;
    }
    into.resize(static_cast<std::size_t>(spec.num_elements()));
    for (std::size_t i = 0; i < into.size(); ++i) {
        into[i] = tensor.dtype == Dtype::kF32 ? read_at<float>(tensor.bytes, i)
                                              : ops::from_bf16(read_at<std::uint16_t>(tensor.bytes, i));
    }
}

void WeightLoader::table(const TensorSpec& spec, std::vector<std::int16_t>& into) {
    const Found* found = use(spec.name);
    if (found == nullptr || !check_shape(*found, spec.shape)) {
        return;
    }
    const Tensor& tensor = *found->tensor;
    if (tensor.dtype != Dtype::kI64 && tensor.dtype != Dtype::kI32) {
        add_problem(*found, fmt::format("has dtype {}, expected I64 or I32", name(tensor.dtype)));
        return;
    }
    const auto top_k = static_cast<std::size_t>(geometry_.top_k);
    into.resize(static_cast<std::size_t>(spec.num_elements()));
    for (std::size_t i = 0; i < into.size(); ++i) {
        const std::int64_t expert = tensor.dtype == Dtype::kI64 ? read_at<std::int64_t>(tensor.bytes, i)
                                                                : read_at<std::int32_t>(tensor.bytes, i);
        if (expert < 0 || expert >= geometry_.num_experts) {
            add_problem(*found,
                        fmt::format("sends token {} to expert {} of {}", i / top_k, expert, geometry_.num_experts));
            return;
        }
        into[i] = static_cast<std::int16_t>(expert);
        const auto row_begin = into.begin() + static_cast<std::ptrdiff_t>(i / top_k * top_k);
        const auto here = into.begin() + static_cast<std::ptrdiff_t>(i);
        if (std::find(row_begin, here, into[i]) != here) {
            add_problem(*found, fmt::format("sends token {} to expert {} twice", i / top_k, expert));
            return;
        }
    }
}

void WeightLoader::experts(std::int32_t layer, std::vector<ExpertWeights>& into) {
    into.resize(static_cast<std::size_t>(geometry_.num_experts));
    if (load_stacked_experts(layer, into)) {
        return;
    }
    for (std::int32_t e = 0; e < geometry_.num_experts; ++e) {
        visit_expert(geometry_, layer, e, into[static_cast<std::size_t>(e)], *this);
    }
}

bool WeightLoader::load_stacked_experts(std::int32_t layer, std::vector<ExpertWeights>& into) {
    const std::string prefix = fmt::format("layers.{}.ffn.experts.", layer);
    const std::string gate_up_name = prefix + "gate_up_proj.weight";
    if (found_.find(gate_up_name) == found_.end()) {
        return false;
    }
    as_released_ = false;
    const std::int64_t num_experts = geometry_.num_experts;
    const std::int64_t hidden = geometry_.hidden_size;
    const std::int64_t inter = geometry_.expert_inter;
    const auto gate_up = check_stack({gate_up_name, Storage::kFp4, {num_experts, 2 * inter, hidden}});
    const auto down = check_stack({prefix + "down_proj.weight", Storage::kFp4, {num_experts, hidden, inter}});
    if (!gate_up || !down) {
        return true;
    }
    if (gate_up->format == WeightFormat::kFp8 && inter % kBlock != 0) {
        add_problem(found_.at(gate_up_name),
                    fmt::format("is FP8 with {} gate rows: a block of scales would span gate and up", inter));
        return true;
    }
    for (std::int64_t e = 0; e < num_experts; ++e) {
        into[static_cast<std::size_t>(e)] = {view(*gate_up, e, 0, inter), view(*gate_up, e, inter, inter),
                                             view(*down, e, 0, hidden)};
    }
    return true;
}

Result<WeightFormat> WeightLoader::finish() const {
    std::vector<std::string> texts = problems_;
    if (!missing_.empty()) {
        texts.insert(texts.begin(),
                     fmt::format("{} tensors are missing: {}", missing_.size(), list_first(missing_, ", ")));
    }
    if (!texts.empty()) {
        return invalid(list_first(texts, "; "));
    }
    return expert_format_.value();  // the schema has experts, and none is missing
}

void WeightLoader::log_skipped() const {
    if (num_mtp_ > 0) {
        log::info(fmt::format("weights: skipped {} MTP tensors", num_mtp_));
    }
    std::vector<std::string> unknown;
    for (const auto& [released, found] : found_) {
        if (!found.used) {
            unknown.push_back(*found.file_name);
        }
    }
    if (!unknown.empty()) {
        log::warn(fmt::format("weights: ignored {} tensors that are not part of the model: {}", unknown.size(),
                              list_first(unknown, ", ")));
    }
}

const WeightLoader::Found* WeightLoader::use(const std::string& name) {
    const auto it = found_.find(name);
    if (it == found_.end()) {
        missing_.push_back(name);
        return nullptr;
    }
    it->second.used = true;
    ++num_used_;
    return &it->second;
}

std::optional<WeightLoader::Stack> WeightLoader::check_stack(const TensorSpec& spec) {
    const Found* found = use(spec.name);
    if (found == nullptr) {
        return std::nullopt;
    }
    const Tensor& tensor = *found->tensor;
    const auto format = format_of(tensor.dtype);
    if (!format || !allowed(spec.storage, *format)) {
        add_problem(*found, fmt::format("has dtype {}, expected {}", name(tensor.dtype), allowed_dtypes(spec.storage)));
        return std::nullopt;
    }
    std::vector<std::int64_t> expected = spec.shape;
    if (*format == WeightFormat::kFp4) {
        if (expected.back() % kGroup != 0) {
            add_problem(*found, fmt::format("is FP4 with {} columns, no multiple of {}", expected.back(), kGroup));
            return std::nullopt;
        }
        expected.back() /= tensor.dtype == Dtype::kF4 ? 1 : 2;  // F4 counts codes, I8 and U8 count bytes
    }
    if (!check_shape(*found, expected)) {
        return std::nullopt;
    }
    Stack stack{*format,           ops::ScaleFormat::kNone, spec.shape.rbegin()[1],
                spec.shape.back(), tensor.bytes.data(),     nullptr};
    const bool has_scale = *format == WeightFormat::kFp4 || *format == WeightFormat::kFp8;
    as_released_ = as_released_ && (has_scale || !spec.quantised());
    if (spec.storage == Storage::kFp4 && *format != expert_format_.value_or(*format)) {
        add_problem(*found,
                    fmt::format("has dtype {}, another format than the first routed expert", name(tensor.dtype)));
        return std::nullopt;
    }
    if (spec.storage == Storage::kFp4) {
        expert_format_ = *format;
    }
    return has_scale && !check_scale(spec, stack) ? std::nullopt : std::optional(stack);
}

bool WeightLoader::check_scale(const TensorSpec& spec, Stack& stack) {
    const Found* found = use(spec.scale_name());
    if (found == nullptr) {
        return false;
    }
    const Tensor& tensor = *found->tensor;
    const bool fp8 = stack.format == WeightFormat::kFp8;
    if (tensor.dtype != Dtype::kF8E8m0 && !(fp8 && tensor.dtype == Dtype::kF32)) {
        add_problem(*found,
                    fmt::format("has dtype {}, expected {}", name(tensor.dtype), fp8 ? "F8_E8M0 or F32" : "F8_E8M0"));
        return false;
    }
    if (!check_shape(*found, scale_shape(fp8 ? Storage::kFp8 : Storage::kFp4, spec.shape))) {
        return false;
    }
    stack.scale_format = tensor.dtype == Dtype::kF32 ? ops::ScaleFormat::kF32 : ops::ScaleFormat::kE8m0;
    stack.scale = tensor.bytes.data();
    return true;
}

bool WeightLoader::check_shape(const Found& found, std::span<const std::int64_t> expected) {
    if (std::equal(expected.begin(), expected.end(), found.tensor->shape.begin(), found.tensor->shape.end())) {
        return true;
    }
    add_problem(found,
                fmt::format("has shape {}, expected {}", format_shape(found.tensor->shape), format_shape(expected)));
    return false;
}

void WeightLoader::add_problem(const Found& found, const std::string& text) {
    const auto& file = checkpoint_.files()[static_cast<std::size_t>(found.tensor->file_idx)];
    problems_.push_back(fmt::format("{}: tensor {} {}", file, *found.file_name, text));
}

ops::MatrixView WeightLoader::view(const Stack& stack, std::int64_t index, std::int64_t first_row,
                                   std::int64_t num_rows) {
    const std::int64_t row = index * stack.rows + first_row;
    const std::byte* scale = nullptr;
    if (stack.format == WeightFormat::kFp4) {
        scale = stack.scale + row * (stack.cols / kGroup);
    } else if (stack.format == WeightFormat::kFp8) {
        const std::int64_t block_row = index * ceil_div(stack.rows, kBlock) + first_row / kBlock;
        const std::int64_t scale_bytes = stack.scale_format == ops::ScaleFormat::kF32 ? 4 : 1;
        scale = stack.scale + block_row * ceil_div(stack.cols, kBlock) * scale_bytes;
    }
    return {stack.format,
            stack.scale_format,
            static_cast<std::int32_t>(num_rows),
            static_cast<std::int32_t>(stack.cols),
            stack.weight + row * row_bytes(stack.format, stack.cols),
            scale};
}

}  // namespace megamoe::weights
