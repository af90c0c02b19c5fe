#include "moe/wire.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "compute/cpu/convert.h"

namespace megamoe::moe {

std::int64_t wire_row_bytes(const ExpertMath& math) {
    return std::int64_t{math.hidden} * (math.ds() ? 2 : 4);
}

void write_wire(const ExpertMath& math, const float* row, std::int32_t count, std::byte* to) {
    if (!math.ds()) {
        std::memcpy(to, row, sizeof(float) * static_cast<std::size_t>(count));
        return;
    }
    cpu::to_bf16(math.isa, row, count, reinterpret_cast<std::uint16_t*>(to));
}

void read_wire(const ExpertMath& math, const std::byte* from, float* row) {
    if (!math.ds()) {
        std::memcpy(row, from, sizeof(float) * static_cast<std::size_t>(math.hidden));
        return;
    }
    std::fill_n(row, math.hidden, 0.0F);
    cpu::add_bf16(math.isa, reinterpret_cast<const std::uint16_t*>(from), math.hidden, row);
}

void combine(const OperatorConfig& c, Workers& workers, const Input& input, std::byte* area, const float* shared,
             float* out) {
    const std::int64_t h = c.math.hidden;
    workers.run(input.rows, [&](std::int64_t token) {
        thread_local std::vector<std::int32_t> order;
        order.resize(static_cast<std::size_t>(c.top_k));
        const std::int32_t* ids = input.expert_id + token * c.top_k;
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return ids[a] < ids[b]; });
        float* sum = out + token * h;
        std::fill_n(sum, h, 0.0F);
        for (const std::int32_t k : order) {
            if (ids[k] < 0 || ids[k] >= c.num_experts) {
                continue;
            }
            const std::byte* result = combine_row(c, area, token, k);
            if (c.math.ds()) {
                cpu::add_bf16(c.math.isa, reinterpret_cast<const std::uint16_t*>(result), h, sum);
            } else {
                cpu::add(c.math.isa, reinterpret_cast<const float*>(result), h, sum);
            }
        }
        cpu::add(c.math.isa, shared + token * h, h, sum);
        if (c.math.ds()) {
            cpu::round_bf16(c.math.isa, sum, h);
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
