// What a report says about a run besides its measurement.
#pragma once

#include <string>
#include <string_view>

#include "lab/manifest/manifest.h"
#include "lab/run/measure.h"

namespace megamoe::lab {

struct RunFacts {
    std::string experiment;  // empty for a single run
    std::string arm;
    std::string workload;
    int block = 0;  // repeats count from 1; 0: a single run
    int order_in_block = 0;
    std::string client_command;  // quoted for a POSIX shell
    std::string server_command;  // empty: started by somebody else
    std::string manifest_path;
    std::string flags_json = "{}";  // resolved client flags
    std::string metadata_json = "{}";
    std::string tag;
};

// What the client alone can say about a run's quality.
struct RunChecks {
    bool complete = false;      // every row ok, warm-up included
    bool same_prompts = false;  // bodies equal the manifest
    bool lengths = false;       // server-side token counts equal the manifest's
    bool concurrency = false;   // the asked concurrency was reached
    bool client_fast = false;   // the client was not the limit

    bool valid() const { return complete && same_prompts && lengths; }
};
RunChecks check_run(const Measured& run, const MeasureOptions& options);

// Arguments as one line that a POSIX shell splits into the same arguments.
std::string shell_quote(const std::vector<std::string>& argv);

}  // namespace megamoe::lab
