// The protocol of the fused operator as a small machine, and every order in which its threads can take their steps.
//
// Each step is one access to memory that another thread uses: push a row's index, publish a count, read a count, pull a
// row, finish a first layer, return a result, publish a done word, read one, and so on. Tasks come in the order of the
// real TaskCursor. The model is sequentially consistent: that each edge also has the fences it needs is for the thread
// sanitizer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace megamoe::moe {

// Ways to break the protocol; a check that cannot fail proves nothing.
enum class Breach : std::uint8_t {
    kNone,
    kDoneBeforeRows,    // the done word goes out before the results
    kCountBeforeIndex,  // a count goes out before the list it makes valid
    kAnyEpoch,          // a word of an older launch is taken for this one's
    kLeaveEarly,        // a rank leaves a launch without the done words
};

struct ProtocolModel {
    std::int32_t num_ranks = 2;
    std::int32_t local_experts = 1;
    std::int32_t threads = 1;  // of a rank, that draw tasks
    std::int32_t ring = 2;     // block slots; a block is one row
    std::int32_t lag = 1;      // units (of one block) between the layers
    std::int32_t launches = 2;
    std::int32_t banks = 2;
    std::vector<std::int32_t> rows;  // [source][expert] sent in every launch
    // The device's form: each thread reads the counts for itself. Else one reads them for all, as on the CPU.
    bool all_read_counts = false;
    Breach breach = Breach::kNone;
};

struct ModelVerdict {
    std::int64_t states = 0;         // reached
    std::string violation;           // empty: no order of steps goes wrong
    std::vector<std::string> trace;  // a shortest order that does
};

// Breadth first over all reachable states: ends with the first violation, or when none is left. A violation is a state
// in which no thread can go on though not all are done (deadlock), or a read of a word that is not of the reader's
// launch.
//
// In    sizes small: at most 3 ranks, 4 experts in all, 3 threads a rank, 2 rows a (source, expert)
// Cost  time and memory linear in the states: about 1 us and 150 bytes each
// Spec  operator spec, 6.3 and 6.9 point 3
ModelVerdict explore(const ProtocolModel& model);

}  // namespace megamoe::moe
