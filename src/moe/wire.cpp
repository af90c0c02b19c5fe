#include "moe/wire.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "compute/ops/formats.h"

namespace megamoe::moe {

std::int64_t wire_row_bytes(const ExpertMath& math) {
    return std::int64_t{math.hidden} * (math.ds() ? 2 : 4);
}

void write_wire(const ExpertMath& math, const float* row, std::int32_t count, std::byte* to) {
    if (!math.ds()) {
        std::memcpy(to, row, sizeof(float) * static_cast<std::size_t>(count));
        return;
    }
    auto* codes = reinterpret_cast<std::uint16_t*>(to);
    for (std::int32_t i = 0; i < count; ++i) {
        codes[i] = ops::to_bf16(row[i]);
    }
}

void read_wire(const ExpertMath& math, const std::byte* from, float* row) {
    if (!math.ds()) {
        std::memcpy(row, from, sizeof(float) * static_cast<std::size_t>(math.hidden));
        return;
    }
    const auto* codes = reinterpret_cast<const std::uint16_t*>(from);
    for (std::int32_t i = 0; i < math.hidden; ++i) {
        row[i] = ops::from_bf16(codes[i]);
    }
}

void combine(const OperatorConfig& c, Workers& workers, const Input& input, std::byte* area, const float* shared,
             float* out) {
    const std::int64_t h = c.math.hidden;
    workers.run(input.rows, [&](std::int64_t token) {
        thread_local std::vector<std::int32_t> order;
        thread_local std::vector<float> row;
        order.resize(static_cast<std::size_t>(c.top_k));
        row.resize(static_cast<std::size_t>(h));
        const std::int32_t* ids = input.expert_id + token * c.top_k;
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return ids[a] < ids[b]; });
        float* sum = out + token * h;
        std::fill_n(sum, h, 0.0F);
        for (const std::int32_t k : order) {
            if (ids[k] < 0 || ids[k] >= c.num_experts) {
                continue;
            }
            read_wire(c.math, combine_row(c, area, token, k), row.data());
            for (std::int64_t i = 0; i < h; ++i) {
                sum[i] += row[static_cast<std::size_t>(i)];
            }
        }
        for (std::int64_t i = 0; i < h; ++i) {
            const float v = sum[i] + shared[token * h + i];
            sum[i] = c.math.ds() ? ops::round_bf16(v) : v;
        }
    });
}

void quantise_rows(const ExpertMath& math, Workers& workers, const float* x, std::int32_t rows, float* out) {
    std::copy_n(x, std::int64_t{rows} * math.hidden, out);
    if (math.ds()) {
        workers.run(rows, [&](std::int64_t row) {
            cpu::quantise_fp8(math.isa, out + row * math.hidden, math.hidden, kActGroup);
        });
    }
}

}  // namespace megamoe::moe
