// All files of one run's evidence.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/report/run_facts.h"

namespace megamoe::lab {

struct WriteOptions {
    bool detailed = true;  // requests.jsonl
    bool chunks = false;   // ... with the time of every chunk
};

// Writes result.json, requests.jsonl, client.json, command.txt, env.json, server/server_info.json, SHA256SUMS into
// `folder`, which must be empty or absent, and seals it.
// Error kFailedPrecondition: the folder holds something; kInternal: the disk
[[nodiscard]] Result<Done> write_run(const std::string& folder, const Measured& run, const MeasureOptions& options,
                                     const Manifest& manifest, const RunFacts& facts, const WriteOptions& write);

}  // namespace megamoe::lab
