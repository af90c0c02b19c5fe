#include "oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "compute/ops/formats.h"

namespace megamoe::op_cuda {
namespace {

// Row `row` of a matrix [n, k] as doubles.
void decode_row(const OracleShape& shape, const HostExpert& expert, int matrix, std::int64_t row, std::int64_t k,
                std::vector<double>& out) {
    static const auto e4m3 = [] {
        std::array<double, 256> table{};
        for (std::size_t i = 0; i < table.size(); ++i) {
            table[i] = static_cast<double>(ops::from_e4m3(static_cast<std::uint8_t>(i)));
        }
        return table;
    }();
    const std::uint8_t* codes = expert.codes[matrix].data();
    const std::uint8_t* scales = expert.scales[matrix].data();
    out.resize(static_cast<std::size_t>(k));
    for (std::int64_t col = 0; col < k; ++col) {
        double value = 0;
        if (shape.fp8) {
            float scale = 0;
            std::memcpy(&scale, scales + ((row / 128) * ((k + 127) / 128) + col / 128) * 4, 4);
            value = e4m3[codes[row * k + col]] * static_cast<double>(scale);
        } else {
            const auto code = static_cast<std::uint8_t>((codes[(row * k + col) / 2] >> (col % 2 * 4)) & 15);
            value = static_cast<double>(ops::from_e2m1(code)) * std::ldexp(1.0, scales[(row * k + col) / 32] - 127);
        }
        out[static_cast<std::size_t>(col)] = value;
    }
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += a[i] * b[i];
    }
    return sum;
}

}  // namespace

std::vector<float> run_expert(const OracleShape& shape, const HostExpert& expert, const std::uint8_t* x,
                              const float* x_scale, float weight) {
    std::vector<double> in(static_cast<std::size_t>(shape.hidden));
    for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = static_cast<double>(ops::from_e4m3(x[i])) * static_cast<double>(x_scale[i / 128]);
    }
    std::vector<double> row;
    std::vector<float> act(static_cast<std::size_t>(shape.inter));
    for (std::int64_t i = 0; i < shape.inter; ++i) {
        decode_row(shape, expert, 1, i, shape.hidden, row);
        const float gate = std::min(ops::round_bf16(static_cast<float>(dot(in, row))), shape.clamp);
        decode_row(shape, expert, 3, i, shape.hidden, row);
        const float up = std::clamp(ops::round_bf16(static_cast<float>(dot(in, row))), -shape.clamp, shape.clamp);
        act[static_cast<std::size_t>(i)] = ops::round_bf16(gate / (1.0F + std::exp(-gate)) * up * weight);
    }
    ops::simulate_fp8(act.data(), shape.inter, 128);
    const std::vector<double> quantised(act.begin(), act.end());
    std::vector<float> out(static_cast<std::size_t>(shape.hidden));
    for (std::int64_t i = 0; i < shape.hidden; ++i) {
        decode_row(shape, expert, 2, i, shape.inter, row);
        out[static_cast<std::size_t>(i)] = ops::round_bf16(static_cast<float>(dot(quantised, row)));
    }
    return out;
}

}  // namespace megamoe::op_cuda
