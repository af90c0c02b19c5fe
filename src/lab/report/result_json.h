// The result files of a run: figures, one row a request, the client's self-check.
#pragma once

#include <string>

#include "lab/report/run_facts.h"

namespace megamoe::lab {

// result.json, schema bench.result/1: what is unknown here is null. Spec  bench.md 9.1
std::string result_json(const Measured& run, const MeasureOptions& options, const Manifest& manifest,
                        const RunFacts& facts);

// One JSON line a request, warm-up first; chunk arrays only if asked for. Spec  bench.md 5.1
std::string requests_jsonl(const Measured& run, bool with_chunks);

// client.json: was it me? Spec  bench.md 8.6
std::string client_json(const Measured& run, const MeasureOptions& options);

}  // namespace megamoe::lab
