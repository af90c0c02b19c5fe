#include "weights/safetensors_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "weights/safetensors_header.h"

namespace megamoe::weights {
namespace {

constexpr std::size_t kAlignment = 8;  // of the first tensor; the header is padded with spaces up to it

Error write_error(const std::string& path) {
    return {Errc::kResourceExhausted, fmt::format("{}: write failed: {}", path, std::strerror(errno)),
            "free some disk space"};
}

}  // namespace

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path, std::span<const TensorPlan> plans) {
    nlohmann::ordered_json header{{"__metadata__", {{"format", "pt"}}}};
    std::int64_t end = 0;
    for (const TensorPlan& plan : plans) {
        const auto bytes = tensor_bytes(plan.dtype, plan.shape);
        if (!bytes) {
            return invalid(
                fmt::format("{}: tensor {} cannot have the shape {}", path, plan.name, format_shape(plan.shape)));
        }
        header[plan.name] = {{"dtype", name(plan.dtype)}, {"shape", plan.shape}, {"data_offsets", {end, end + *bytes}}};
        end += *bytes;
    }
    std::string text = header.dump();
    text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
    const std::uint64_t text_bytes = text.size();

    File file(std::fopen(path.c_str(), "wb"));
    if (file == nullptr) {
        return invalid(fmt::format("{}: {}", path, std::strerror(errno)));
    }
    const auto header_bytes = static_cast<std::int64_t>(sizeof(text_bytes) + text.size());
    SafetensorsWriter writer(path, std::move(file), header_bytes + end);
    MM_TRY_DONE(writer.append(std::as_bytes(std::span(&text_bytes, 1))));
    MM_TRY_DONE(writer.append(std::as_bytes(std::span(text))));
    return writer;
}

Result<Done> SafetensorsWriter::append(std::span<const std::byte> bytes) {
    const auto count = static_cast<std::int64_t>(bytes.size());
    MM_CHECK(count <= bytes_left_, "more bytes than planned for", path_, count, bytes_left_);
    bytes_left_ -= count;
    if (count > 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
        return write_error(path_);
    }
    return Done{};
}

Result<Done> SafetensorsWriter::finish() {
    MM_CHECK(bytes_left_ == 0, "bytes still missing in", path_, bytes_left_);
    if (std::fclose(file_.release()) != 0) {
        return write_error(path_);
    }
    return Done{};
}

}  // namespace megamoe::weights
