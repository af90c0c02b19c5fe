#include "moe/op/op_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "compute/ops/formats.h"
#include "weights/synth_random.h"

namespace megamoe::moe::op {
namespace {

using ops::WeightFormat;
using weights::SynthRandom;

constexpr std::array kGeometries{
    Geometry{"tiny", 256, 128, 32, 4},
    Geometry{"flash-share", 4096, 2048, 32, 6},
    Geometry{"pro-share", 7168, 3072, 48, 6},
};

constexpr double kGateGain = 4;  // deviation of gate and up for normal rows: 1 in 80 passes the limit

// Root mean square of a code drawn uniformly.
double code_rms(WeightFormat format) {
    double squares = 0;
    int count = 0;
    for (int code = 0; code < 256; ++code) {
        const auto byte = static_cast<std::uint8_t>(code);
        const double value = format == WeightFormat::kFp4 ? ops::from_e2m1(byte & 15) : ops::from_e4m3(byte);
        if (!std::isnan(value)) {
            squares += value * value;
            ++count;
        }
    }
    return std::sqrt(squares / count);
}

void fill_random_bytes(const SynthRandom& random, std::vector<std::uint8_t>& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::uint8_t>(random.bits(static_cast<std::int64_t>(i / 8)) >> (i % 8 * 8));
    }
}

// Any sign and mantissa, four exponents; the mean square is about `deviation` squared.
void fill_bf16(const SynthRandom& random, double deviation, std::vector<std::uint8_t>& bytes) {
    const auto low = static_cast<std::uint64_t>(127 + static_cast<int>(std::lround(std::log2(deviation))) - 3);
    for (std::size_t i = 0; i < bytes.size() / 2; ++i) {
        const std::uint64_t draw = random.bits(static_cast<std::int64_t>(i));
        const std::uint64_t code = (draw & 0x807F) | (low + (draw >> 16 & 3)) << 7;
        bytes[2 * i] = static_cast<std::uint8_t>(code);
        bytes[2 * i + 1] = static_cast<std::uint8_t>(code >> 8);
    }
}

RawMatrix random_matrix(WeightFormat format, std::int32_t rows, std::int32_t cols, double gain, std::uint64_t seed,
                        const std::string& name) {
    RawMatrix m{.format = format, .rows = rows, .cols = cols, .codes = {}, .scales = {}};
    ops::MatrixView unscaled = m.view();
    unscaled.scale_format = ops::ScaleFormat::kNone;
    m.codes.resize(static_cast<std::size_t>(ops::matrix_bytes(unscaled)));
    m.scales.resize(static_cast<std::size_t>(ops::matrix_bytes(m.view()) - ops::matrix_bytes(unscaled)));
    const SynthRandom random(seed, name);
    const double deviation = gain / std::sqrt(cols);
    if (format == WeightFormat::kBf16) {
        fill_bf16(random, deviation, m.codes);
        return m;
    }
    fill_random_bytes(random, m.codes);
    if (format == WeightFormat::kFp8) {
        for (auto& code : m.codes) {
            code = (code & 0x7F) == 0x7F ? code ^ 0x40 : code;  // not a NaN
        }
    }
    const auto scale = static_cast<int>(std::lround(std::log2(deviation / code_rms(format)))) + 127;
    const SynthRandom scale_random(seed, name + ".scale");
    for (std::size_t i = 0; i < m.scales.size(); ++i) {
        m.scales[i] = static_cast<std::uint8_t>(scale - 1 +
                                                static_cast<int>(scale_random.bits(static_cast<std::int64_t>(i)) % 3));
    }
    return m;
}

WeightFormat format_of(std::int32_t index, WeightFormat routed) {
    return index == kSharedExpert && routed == WeightFormat::kFp4 ? WeightFormat::kFp8 : routed;
}

std::int64_t expert_bytes(const Geometry& g, WeightFormat format) {
    const auto bytes = [&](std::int32_t rows, std::int32_t cols) {
        return ops::matrix_bytes(
            RawMatrix{.format = format, .rows = rows, .cols = cols, .codes = {}, .scales = {}}.view());
    };
    return 2 * bytes(g.inter, g.hidden) + bytes(g.hidden, g.inter);
}

// Error text for `name`, which none of `known` is.
Error no_such(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
    const std::string near = nearest(name, known);
    return invalid(
        fmt::format("there is no {} `{}`", what, name),
        near.empty() ? fmt::format("use one of {}", fmt::join(known, ", ")) : fmt::format("did you mean `{}`?", near));
}

}  // namespace

std::span<const Geometry> geometries() {
    return kGeometries;
}

Result<Geometry> find_geometry(std::string_view name) {
    std::vector<std::string> known;
    for (const Geometry& geometry : kGeometries) {
        if (geometry.name == name) {
            return geometry;
        }
        known.emplace_back(geometry.name);
    }
    return no_such("geometry", name, known);
}

Result<WeightFormat> parse_format(std::string_view name) {
    std::vector<std::string> known;
    for (const auto format : {WeightFormat::kFp4, WeightFormat::kFp8, WeightFormat::kBf16}) {
        if (name_of(format) == name) {
            return format;
        }
        known.emplace_back(name_of(format));
    }
    return no_such("weight format", name, known);
}

std::string_view name_of(WeightFormat format) {
    switch (format) {
        case WeightFormat::kFp4:
            return "fp4";
        case WeightFormat::kFp8:
            return "fp8";
        case WeightFormat::kBf16:
            return "bf16";
        case WeightFormat::kF32:
            return "f32";
    }
    MM_CHECK(false, "weight format", static_cast<int>(format));
}

ops::MatrixView RawMatrix::view() const {
    const bool scaled = format == WeightFormat::kFp4 || format == WeightFormat::kFp8;
    return {.format = format,
            .scale_format = scaled ? ops::ScaleFormat::kE8m0 : ops::ScaleFormat::kNone,
            .rows = rows,
            .cols = cols,
            .weight = codes.data(),
            .scale = scales.data()};
}

RawExpert random_expert(const Geometry& g, WeightFormat routed, std::uint64_t seed, std::int32_t index) {
    const WeightFormat format = format_of(index, routed);
    const auto name = [&](const char* matrix) { return fmt::format("{}.{}.{}", g.name, index, matrix); };
    return {.w1 = random_matrix(format, g.inter, g.hidden, kGateGain, seed, name("w1")),
            .w3 = random_matrix(format, g.inter, g.hidden, kGateGain, seed, name("w3")),
            .w2 = random_matrix(format, g.hidden, g.inter, 1, seed, name("w2"))};
}

PackedExpert pack(const RawExpert& raw) {
    return {.w1 = cpu::PackedMatrix::pack(raw.w1.view()),
            .w3 = cpu::PackedMatrix::pack(raw.w3.view()),
            .w2 = cpu::PackedMatrix::pack(raw.w2.view())};
}

LayerExperts random_layer(const Geometry& g, WeightFormat format, std::uint64_t seed, Workers& workers) {
    LayerExperts layer;
    layer.routed.resize(static_cast<std::size_t>(g.num_experts));
    workers.run(g.num_experts, [&](std::int64_t e) {
        layer.routed[static_cast<std::size_t>(e)] = pack(random_expert(g, format, seed, static_cast<std::int32_t>(e)));
    });
    layer.shared = pack(random_expert(g, format, seed, kSharedExpert));
    return layer;
}

std::int64_t layer_bytes(const Geometry& g, WeightFormat format) {
    return g.num_experts * expert_bytes(g, format) + expert_bytes(g, format_of(kSharedExpert, format));
}

Result<Done> check_memory(std::int64_t bytes, const Geometry& g) {
    const std::int64_t available = available_memory_bytes();
    const std::int64_t needed = bytes + bytes / 4;
    if (available >= 0 && needed > available) {
        return Error{Errc::kResourceExhausted,
                     fmt::format("{} experts of geometry {} need about {:.1f} GB, and this machine has {:.1f} GB left",
                                 g.num_experts, g.name, static_cast<double>(needed) * 1e-9,
                                 static_cast<double>(available) * 1e-9),
                     "ask for fewer with --experts"};
    }
    return Done{};
}

std::vector<float> random_rows(std::int64_t rows, std::int32_t hidden, std::uint64_t seed) {
    const SynthRandom random(seed, "rows");
    std::vector<float> x(static_cast<std::size_t>(rows * hidden));
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = ops::round_bf16(random.normal(static_cast<std::int64_t>(i)));
    }
    return x;
}

}  // namespace megamoe::moe::op
