// Attention and indexer scores of one query in profile ds, for the Flash and Pro models and the small one. The roof is
// oneDNN's bfloat16 product at its best: the two products of attention are the whole of the counted work.
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/table.h"
#include "bench/roofs/roofs.h"
#include "compute/cpu/row_ops.h"
#include "compute/cpu/test_data.h"

namespace megamoe::bench {
namespace {

struct Case {
    std::int32_t heads, dim, rows;
};

struct Operands {
    std::vector<float> q;
    std::vector<std::uint16_t> kv;
    std::vector<float> weight;  // sinks of attention, head weights of the indexer
    std::vector<float> out;
    std::vector<float> scratch;
};

// A shape at which oneDNN is near its best.
double matmul_roof() {
    static const double rate = bf16_matmul_rate(256, 2048, 2048).value_or(0);
    return rate;
}

std::shared_ptr<Operands> operands_of(const Case& c) {
    auto o = std::make_shared<Operands>();
    o->q = cpu::random_floats(static_cast<std::int64_t>(c.heads) * c.dim, 1, /*bf16=*/true);
    for (const float v : cpu::random_floats(static_cast<std::int64_t>(c.rows) * c.dim, 2)) {
        o->kv.push_back(ops::to_bf16(v));
    }
    o->weight = cpu::random_floats(c.heads, 3);
    return o;
}

Prepared attend_row(const Case& c) {
    auto o = operands_of(c);
    o->out.resize(o->q.size());
    o->scratch.resize(static_cast<std::size_t>(cpu::attend_scratch(c.heads, c.dim, c.rows)));
    Prepared row;
    row.work = {2.0 * c.rows * c.dim, 4.0 * c.heads * c.dim * c.rows, 0, matmul_roof()};
    row.run = [o, c] {
        cpu::attend(cpu::detect_isa(), {.q = o->q.data(),
                                        .kv = o->kv.data(),
                                        .kv_bf16 = true,
                                        .heads = c.heads,
                                        .dim = c.dim,
                                        .rows = c.rows,
                                        .scale = 0.05F,
                                        .sink = o->weight.data(),
                                        .rounding = cpu::Rounding::kBf16,
                                        .out = o->out.data(),
                                        .scratch = o->scratch.data()});
    };
    return row;
}

Prepared index_row(const Case& c) {
    auto o = operands_of(c);
    o->out.resize(static_cast<std::size_t>(c.rows));
    Prepared row;
    row.work = {2.0 * c.rows * c.dim, 2.0 * c.heads * c.dim * c.rows, 0, matmul_roof()};
    row.run = [o, c] {
        cpu::index_scores(cpu::detect_isa(), o->q.data(), o->kv.data(), true, o->weight.data(), c.heads, c.dim, c.rows,
                          cpu::Rounding::kBf16, o->out.data());
    };
    return row;
}

std::string name_of(const char* what, const Case& c) {
    return std::string(what) + " heads=" + std::to_string(c.heads) + " dim=" + std::to_string(c.dim) +
           " rows=" + std::to_string(c.rows);
}

}  // namespace

void add_attend_rows() {
    for (const Case& c : {Case{8, 64, 128}, Case{16, 128, 128}, Case{64, 512, 128}, Case{64, 512, 640},
                          Case{128, 512, 128}, Case{128, 512, 1152}}) {
        add_row(name_of("attend", c), [c] { return attend_row(c); });
    }
    for (const Case& c : {Case{64, 128, 1024}, Case{64, 128, 32768}}) {
        add_row(name_of("index", c), [c] { return index_row(c); });
    }
}

}  // namespace megamoe::bench
