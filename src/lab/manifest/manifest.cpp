#include "lab/manifest/manifest.h"

#include <array>

namespace megamoe::lab {

std::string_view to_string(Role role) {
    constexpr std::array<std::string_view, 3> kNames{"canary", "warmup", "measure"};
    return kNames[static_cast<std::size_t>(role)];
}

std::string_view to_string(PromptFormat format) {
    return format == PromptFormat::kText ? "text" : "ids";
}

RowCounts count_rows(const Manifest& manifest) {
    RowCounts counts;
    for (const Row& row : manifest.rows) {
        switch (row.role) {
            case Role::kCanary:
                ++counts.canary;
                break;
            case Role::kWarmup:
                ++counts.warmup;
                break;
            case Role::kMeasure:
                ++counts.measure;
                break;
        }
    }
    return counts;
}

std::vector<const Row*> rows_of(const Manifest& manifest, Role role) {
    std::vector<const Row*> rows;
    for (const Row& row : manifest.rows) {
        if (row.role == role) {
            rows.push_back(&row);
        }
    }
    return rows;
}

}  // namespace megamoe::lab
