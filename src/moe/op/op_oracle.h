// The operator in profile ds, in double precision, straight from released codes. It shares no code with the backends:
// weights come through ops::matrix_element(), the roundings of the profile are computed here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/workers.h"
#include "moe/op/op_case.h"

namespace megamoe::moe::op {

struct OracleInput {
    std::span<const RawExpert> routed;  // [E]
    const RawExpert* shared = nullptr;
    float limit = kSwigluLimit;
    const float* x = nullptr;                 // [rows, H], bfloat16 values
    const std::int32_t* expert_id = nullptr;  // [rows, K]; outside [0, E): none
    const float* weight = nullptr;            // [rows, K]
    std::int64_t rows = 0;
    std::int32_t top_k = 0;
};

// Out   [rows, H], bfloat16 values
// Cost  decodes every visited expert once, one element at a time: about 0.1 s for an expert of the Flash model
// Spec  model spec, 3.9, 3.10 and 7.2
std::vector<double> run_oracle(const OracleInput& input, Workers& workers);

// Nearest bfloat16, ties to even; normal numbers.
double oracle_bf16(double x);
// x = what FP8 activation quantisation makes of it, by groups of 128.
void oracle_fp8(std::span<double> x);

// |got - expected| / |expected| over all elements; infinity if a value is not finite.
double relative_error(std::span<const float> got, std::span<const double> expected);

}  // namespace megamoe::moe::op
