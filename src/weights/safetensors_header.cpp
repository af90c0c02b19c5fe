#include "weights/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace megamoe::weights {
namespace {

using nlohmann::json;

struct DtypeRow {
    Dtype dtype;
    std::string_view name;
    std::int32_t bits;
};

constexpr std::array kDtypes{
    DtypeRow{Dtype::kF64, "F64", 64},       DtypeRow{Dtype::kF32, "F32", 32},
    DtypeRow{Dtype::kF16, "F16", 16},       DtypeRow{Dtype::kBf16, "BF16", 16},
    DtypeRow{Dtype::kI64, "I64", 64},       DtypeRow{Dtype::kI32, "I32", 32},
    DtypeRow{Dtype::kI16, "I16", 16},       DtypeRow{Dtype::kI8, "I8", 8},
    DtypeRow{Dtype::kU8, "U8", 8},          DtypeRow{Dtype::kBool, "BOOL", 8},
    DtypeRow{Dtype::kF8E4m3, "F8_E4M3", 8}, DtypeRow{Dtype::kF8E5m2, "F8_E5M2", 8},
    DtypeRow{Dtype::kF8E8m0, "F8_E8M0", 8}, DtypeRow{Dtype::kF4, "F4", 4},
};

const DtypeRow& row_of(Dtype dtype) {
    return *std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeRow& row) { return row.dtype == dtype; });
}

// A JSON object; a key that stands twice in one object is an error, where nlohmann alone would keep the last one.
Result<json> parse_object(std::string_view text) {
    std::vector<std::set<std::string>> open_objects;
    std::optional<std::string> duplicate;
    const auto watch_keys = [&](int /*depth*/, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::object_start) {
            open_objects.emplace_back();
        } else if (event == json::parse_event_t::object_end) {
            open_objects.pop_back();
        } else if (event == json::parse_event_t::key) {
            auto key = parsed.get<std::string>();
            if (!open_objects.back().insert(key).second) {
                duplicate = std::move(key);
            }
        }
        return true;
    };
    json object = json::parse(text, watch_keys, /*allow_exceptions=*/false);
    if (object.is_discarded() || !object.is_object()) {
        return invalid("is not a JSON object");
    }
    if (duplicate) {
        return invalid(fmt::format("has the name {} twice", *duplicate));
    }
    return object;
}

std::optional<std::vector<std::int64_t>> as_sizes(const json& object, std::string_view field) {
    const auto list = object.find(field);
    if (list == object.end() || !list->is_array()) {
        return std::nullopt;
    }
    std::vector<std::int64_t> sizes;
    for (const json& size : *list) {
        // Values from 2^63 on stay unsigned in nlohmann; they would turn negative here.
        if (!size.is_number_unsigned() || size.get<std::int64_t>() < 0) {
            return std::nullopt;
        }
        sizes.push_back(size.get<std::int64_t>());
    }
    return sizes;
}

Result<HeaderEntry> parse_entry(const std::string& name, const json& fields, std::int64_t data_bytes) {
    if (!fields.is_object()) {
        return invalid(fmt::format("tensor {} is no object", name));
    }
    const auto dtype = fields.find("dtype");
    if (dtype == fields.end() || !dtype->is_string()) {
        return invalid(fmt::format("tensor {} has no dtype", name));
    }
    const auto& spelled = dtype->get_ref<const std::string&>();
    const auto* row =
        std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeRow& r) { return r.name == spelled; });
    if (row == kDtypes.end()) {
        return invalid(fmt::format("tensor {} has the unknown dtype {}", name, spelled));
    }
    auto shape = as_sizes(fields, "shape");
    if (!shape) {
        return invalid(fmt::format("tensor {} has no shape of non-negative integers", name));
    }
    const auto offsets = as_sizes(fields, "data_offsets");
    if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
        return invalid(fmt::format("tensor {} has no data_offsets [begin, end]", name));
    }
    HeaderEntry entry{name, row->dtype, std::move(*shape), (*offsets)[0], (*offsets)[1]};
    const auto bytes = tensor_bytes(entry.dtype, entry.shape);
    if (!bytes || *bytes != entry.end - entry.begin) {
        return invalid(fmt::format("tensor {} has {} bytes, but {} x {} needs {}", name, entry.end - entry.begin,
                                   spelled, format_shape(entry.shape),
                                   bytes ? fmt::format("{}", *bytes) : "no whole number of bytes below 2^63"));
    }
    if (entry.end > data_bytes) {
        return invalid(
            fmt::format("tensor {} ends at byte {} of {}: the file is truncated", name, entry.end, data_bytes));
    }
    return entry;
}

bool stays_in_folder(std::string_view file) {
    return !file.empty() && file != "." && file != ".." &&
           file.find_first_of(std::string_view("/\\\0", 3)) == file.npos;
}

}  // namespace

std::string_view name(Dtype dtype) {
    return row_of(dtype).name;
}

std::optional<std::int64_t> tensor_bytes(Dtype dtype, std::span<const std::int64_t> shape) {
    std::int64_t bits = row_of(dtype).bits;
    for (const std::int64_t size : shape) {
        if (size < 0 || __builtin_mul_overflow(bits, size, &bits)) {
            return std::nullopt;
        }
    }
    return bits % 8 == 0 ? std::optional(bits / 8) : std::nullopt;
}

std::string format_shape(std::span<const std::int64_t> shape) {
    return fmt::format("[{}]", fmt::join(shape, ","));
}

Result<std::vector<HeaderEntry>> parse_safetensors_header(std::string_view text, std::int64_t data_bytes) {
    auto header = parse_object(text);
    if (!header) {
        return invalid("the header " + header.error().what);
    }
    std::vector<HeaderEntry> entries;
    for (const auto& [name, fields] : header.value().items()) {
        if (name != "__metadata__") {
            MM_TRY(auto entry, parse_entry(name, fields, data_bytes));
            entries.push_back(std::move(entry));
        }
    }
    std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    for (std::size_t i = 1; i < entries.size(); ++i) {
        const HeaderEntry& before = entries[i - 1];
        if (before.end > entries[i].begin) {
            return invalid(fmt::format("tensor {} begins at byte {}, inside tensor {} that ends at {}", entries[i].name,
                                       entries[i].begin, before.name, before.end));
        }
    }
    return entries;
}

Result<std::map<std::string, std::string>> parse_shard_index(std::string_view text) {
    auto index = parse_object(text);
    if (!index) {
        return invalid("the index " + index.error().what);
    }
    const auto weight_map = index.value().find("weight_map");
    if (weight_map == index.value().end() || !weight_map->is_object()) {
        return invalid("the index has no object weight_map");
    }
    std::map<std::string, std::string> files;
    for (const auto& [name, file] : weight_map->items()) {
        if (!file.is_string() || !stays_in_folder(file.get_ref<const std::string&>())) {
            return invalid(
                fmt::format("tensor {} is placed in {}, which is no file name of this folder", name, file.dump()));
        }
        files.emplace(name, file.get<std::string>());
    }
    return files;
}

}  // namespace megamoe::weights
