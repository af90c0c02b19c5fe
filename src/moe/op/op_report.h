// The results of op check and op bench as text and JSON.
#pragma once

#include <span>
#include <string>

#include "moe/op/op_bench.h"
#include "moe/op/op_check.h"

namespace megamoe::moe::op {

std::string check_header();
std::string check_line(const CheckRow& row);

std::string bench_header();
std::string bench_line(const BenchRow& row);

// One object: what ran, and the rows in full precision. Times are microseconds, rates are a second.
std::string bench_json(const BenchOptions& options, std::span<const BenchRow> rows);

}  // namespace megamoe::moe::op
