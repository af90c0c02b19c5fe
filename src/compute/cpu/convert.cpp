#include "compute/cpu/convert.h"

#include "compute/cpu/convert_kernels.h"
#include "compute/ops/formats.h"

namespace megamoe::cpu {
namespace {

void to_bf16_scalar(const float* from, std::int64_t count, std::uint16_t* to) {
    for (std::int64_t i = 0; i < count; ++i) {
        to[i] = ops::to_bf16(from[i]);
    }
}

void add_scalar(const float* from, std::int64_t count, float* sum) {
    for (std::int64_t i = 0; i < count; ++i) {
        sum[i] += from[i];
    }
}

void add_bf16_scalar(const std::uint16_t* from, std::int64_t count, float* sum) {
    for (std::int64_t i = 0; i < count; ++i) {
        sum[i] += ops::from_bf16(from[i]);
    }
}

void round_bf16_scalar(float* x, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        x[i] = ops::round_bf16(x[i]);
    }
}

const ConvertKernels& select(Isa isa) {
    return isa >= kConvertAvx512.needs ? kConvertAvx512 : kConvertScalar;
}

}  // namespace

const ConvertKernels kConvertScalar{Isa::kScalar, &to_bf16_scalar, &add_scalar, &add_bf16_scalar, &round_bf16_scalar};

void to_bf16(Isa isa, const float* from, std::int64_t count, std::uint16_t* to) {
    select(isa).to_bf16(from, count, to);
}

void add(Isa isa, const float* from, std::int64_t count, float* sum) {
    select(isa).add(from, count, sum);
}

void add_bf16(Isa isa, const std::uint16_t* from, std::int64_t count, float* sum) {
    select(isa).add_bf16(from, count, sum);
}

void round_bf16(Isa isa, float* x, std::int64_t count) {
    select(isa).round_bf16(x, count);
}

}  // namespace megamoe::cpu
