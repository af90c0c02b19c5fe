// Matrix products of profile ds by format, rows and shape. The shapes are linears of the Flash model; "memory" is a
// matrix that no cache holds, where the roof is the read rate; for the others it is oneDNN's bfloat16 product of the
// same shape.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bench/micro/table.h"
#include "bench/roofs/roofs.h"
#include "compute/cpu/gemm.h"
#include "compute/cpu/test_data.h"

namespace megamoe::bench {
namespace {

using ops::WeightFormat;

struct Shape {
    const char* name;
    std::int32_t n, k;
};

constexpr std::array kShapes{Shape{"wkv", 512, 4096}, Shape{"expert w1", 2048, 4096}, Shape{"expert w2", 4096, 2048},
                             Shape{"square", 4096, 4096}};
constexpr Shape kMemory{"memory", 65536, 4096};
constexpr std::array kFormats{WeightFormat::kFp4, WeightFormat::kFp8, WeightFormat::kBf16};
constexpr std::int32_t kSmallRows = 4;  // up to here a product is bound by reading the weights

const char* name_of(WeightFormat format) {
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
    return "";
}

struct Operands {
    std::shared_ptr<const cpu::PackedMatrix> w;
    std::vector<float> a;
    std::vector<float> out;
    Workers workers{1};
};

// Rows of one matrix follow each other: it is made once.
std::shared_ptr<const cpu::PackedMatrix> random_matrix(WeightFormat format, const Shape& shape) {
    static std::shared_ptr<const cpu::PackedMatrix> last;
    if (!last || last->format() != format || last->rows() != shape.n || last->cols() != shape.k) {
        last.reset();
        const cpu::RandomMatrix source(format, ops::ScaleFormat::kE8m0, shape.n, shape.k, 1);
        last = std::make_shared<const cpu::PackedMatrix>(cpu::PackedMatrix::pack(source.view()));
    }
    return last;
}

Prepared product(WeightFormat format, const Shape& shape, std::int32_t m) {
    auto operands = std::make_shared<Operands>();
    operands->w = random_matrix(format, shape);
    operands->a = cpu::random_floats(static_cast<std::int64_t>(m) * shape.k, 2, /*bf16=*/true);
    operands->out.resize(static_cast<std::size_t>(m) * static_cast<std::size_t>(shape.n));
    const bool in_memory = shape.n == kMemory.n;
    Prepared row;
    row.work.bytes = static_cast<double>(operands->w->bytes());
    row.work.operations = 2.0 * m * shape.n * shape.k;
    row.work.read_roof = in_memory && m <= kSmallRows ? stream_read_rate() : 0;
    row.work.op_roof = in_memory ? 0 : bf16_matmul_rate(m, shape.n, shape.k).value_or(0);
    row.run = [operands, m, k = shape.k, n = shape.n] {
        cpu::gemm(cpu::detect_isa(), operands->workers,
                  {.w = operands->w.get(),
                   .a = operands->a.data(),
                   .lda = k,
                   .m = m,
                   .out = operands->out.data(),
                   .ldo = n,
                   .math = cpu::Math::kBf16,
                   .round_bf16 = true});
    };
    return row;
}

void add(WeightFormat format, const Shape& shape, std::int32_t m) {
    const std::string name = std::string("gemm ") + name_of(format) + " m=" + std::to_string(m) +
                             " n=" + std::to_string(shape.n) + " k=" + std::to_string(shape.k) + " " + shape.name;
    add_row(name, [=] { return product(format, shape, m); });
}

}  // namespace

void add_gemm_rows() {
    for (const WeightFormat format : kFormats) {
        for (const std::int32_t m : {1, 2, 4, 16}) {
            add(format, kMemory, m);
        }
    }
    for (const Shape& shape : kShapes) {
        for (const WeightFormat format : kFormats) {
            for (const std::int32_t m : {1, 4, 16, 64, 256}) {
                add(format, shape, m);
            }
        }
    }
}

}  // namespace megamoe::bench
