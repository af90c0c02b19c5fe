// The roofs of this machine, measured here and now: rows of a benchmark are read as a share of them.
#pragma once

#include <cstdint>
#include <optional>

namespace megamoe::bench {

// Bytes a second that `num_threads` threads read together, each from a buffer far larger than the last-level cache, in
// ascending order, on huge pages where the system has them. Measures anew and returns the best since the program
// started: call it beside each row that is held against it, since the neighbours on a shared machine change.
// Cost   0.2 seconds, and 256 MiB a thread that stay
// Thread one at a time
double stream_read_rate(std::int32_t num_threads = 1);

// Operations a second (two a multiply-add) of `num_threads` threads that each compute oneDNN's bfloat16 product
// [m, k] x [k, n] -> float32 [m, n] at the same time, weights in the layout that oneDNN prefers. The best of many runs.
// Empty: built without oneDNN, or it refused.
// Cost   about 0.2 seconds
std::optional<double> bf16_matmul_rate(std::int32_t m, std::int32_t n, std::int32_t k, std::int32_t num_threads = 1);

}  // namespace megamoe::bench
