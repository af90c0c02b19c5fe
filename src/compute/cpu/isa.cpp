#include "compute/cpu/isa.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace megamoe::cpu {
namespace {

constexpr std::array kNames{std::string_view{"scalar"}, std::string_view{"avx2"}, std::string_view{"avx512"},
                            std::string_view{"avx512bf16"}};

}  // namespace

// __builtin_cpu_supports also asks the operating system (XGETBV), so a kernel that hides zmm state counts as "no".
// Each level tests every flag that cmake/library.cmake compiles its files with.
Isa detect_isa() {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        return Isa::kScalar;
    }
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq")) {
        return Isa::kAvx2;
    }
    if (!__builtin_cpu_supports("avx512vbmi") || !__builtin_cpu_supports("avx512bf16")) {
        return Isa::kAvx512;
    }
    return Isa::kAvx512Bf16;
}

std::string_view name(Isa isa) {
    return kNames[static_cast<std::size_t>(isa)];
}

Result<Isa> parse_isa(std::string_view text) {
    const Isa best = detect_isa();
    for (std::size_t i = 0; i < kNames.size(); ++i) {
        if (kNames[i] != text) {
            continue;
        }
        if (i > static_cast<std::size_t>(best)) {
            return invalid(
                fmt::format("instruction set \"{}\": this machine has no more than \"{}\"", text, name(best)),
                fmt::format("use {} or a lower one", name(best)));
        }
        return static_cast<Isa>(i);
    }
    return invalid(fmt::format("instruction set \"{}\" is unknown", text),
                   fmt::format("use one of {}", fmt::join(kNames, ", ")));
}

}  // namespace megamoe::cpu
