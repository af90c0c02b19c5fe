// Several server configurations against one manifest: interleaved runs, each on a fresh server process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/report/experiment.h"
#include "lab/run/measure.h"

namespace megamoe::lab {

struct Arm {
    std::string name;
    std::vector<std::string> server_argv;  // must log http://host:port once it listens; use port 0
};

struct AbOptions {
    std::vector<Arm> arms;  // at least one
    int repeats = 3;
    MeasureOptions measure;  // target and counts are filled in
    std::string manifest_path;
    std::string output_dir;  // exists; gets runs/NN-arm/ and a server log each
    std::string experiment = "ab";
    std::string client_command;
    std::int64_t ready_timeout_ms = 120000;
    std::int64_t grace_ms = 30000;
    std::function<void(const std::string& line)> on_event;   // a run has begun or ended; may be empty
    std::function<void(std::string_view what)> on_progress;  // overwrites itself; may be empty
};

// The arms in the order they run in a block (from 0): forwards, then backwards, and so on, as A B B A.
std::vector<std::size_t> order_in_block(std::size_t num_arms, int block);

// Runs everything and writes each run's evidence. What was measured before a failure or Ctrl-C is kept in `experiment`.
// Error kUnavailable: a server did not start, died, or stopped badly; the text has its last log lines
[[nodiscard]] Result<Done> run_arms(const AbOptions& options, const Manifest& manifest, Experiment& experiment);

}  // namespace megamoe::lab
