#include "config/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace megamoe {
namespace {

std::string_view name(Severity severity) {
    switch (severity) {
        case Severity::kRefuse:
            return "refused";
        case Severity::kWarn:
            return "warning";
        case Severity::kNote:
            break;
    }
    return "note";
}

}  // namespace

std::string to_string(const Finding& finding) {
    return fmt::format("{} {}: {}{}{}{}: {}{}{}", finding.id, name(finding.severity), finding.key,
                       finding.requested.empty() ? "" : " ", finding.requested,
                       finding.effective.empty() ? "" : " -> " + finding.effective, finding.reason,
                       finding.fix.empty() ? "" : "; ", finding.fix);
}

bool refuses(std::span<const Finding> findings) {
    return std::any_of(findings.begin(), findings.end(),
                       [](const Finding& finding) { return finding.severity == Severity::kRefuse; });
}

}  // namespace megamoe
