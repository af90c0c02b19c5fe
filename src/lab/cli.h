// The commands of the laboratory: `megamoe bench serve`, `megamoe bench manifest`, `megamoe bench null-server`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/manifest/generate_options.h"
#include "lab/manifest/token_source.h"
#include "lab/report/compat_lines.h"
#include "lab/run/measure.h"

namespace megamoe::lab {

// Exit codes of all bench commands. Spec  bench.md 2
enum class Exit : int {
    kGood = 0,
    kUsage = 1,
    kGateFailed = 2,     // the pass finished, but its figures must not be compared
    kRequestFailed = 3,  // at least one request failed
    kServerGone = 4,     // did not start, died or stopped answering
    kRefused = 5,        // arms that must not be compared
    kManifest = 6,       // manifest changed, damaged, or not the one the flags describe
    kInternal = 7,
    kInterrupted = 130,
};
inline int code(Exit exit) {
    return static_cast<int>(exit);
}

enum class ManifestMode : std::uint8_t { kAuto, kLoad, kCreate };

// `megamoe bench serve`, parsed. Spec  bench.md 3
struct BenchServeOptions {
    MeasureOptions measure;          // counts in it are filled from the manifest
    GenerateOptions generate;        // used when the manifest has to be made
    std::vector<std::string> given;  // names of the flags that were written, without dashes
    std::string manifest_path;       // empty: a manifest inside the output folder
    ManifestMode manifest_mode = ManifestMode::kAuto;
    std::string model;
    std::string tokenizer;  // empty: the model
    std::string output_dir;
    std::string output_file;  // a line is appended
    std::vector<LineShape> emit;
    bool save_detailed = true;
    bool save_chunks = false;
    bool quiet = false;  // no progress
    std::string tag;
    std::string metadata_json = "{}";
    std::string flags_json = "{}";  // every flag with its resolved value, secrets left out
    std::vector<std::string> argv;  // as written
    std::string help;               // not empty: the user asked for it, and nothing else is filled in
};

// In    args  the words after `megamoe bench serve`
// Error kInvalidArgument: a flag that is unknown (with the nearest name), misspelt in value, or not supported (with the
//       reason)
[[nodiscard]] Result<BenchServeOptions> parse_bench_serve(const std::vector<std::string>& args);

// One measured pass: manifest, ready check, warm-up, measurement, result folder, table on stdout.
// In    load_tokens  called only when the manifest must be made
// Out   an Exit as int
int run_bench_serve(const BenchServeOptions& options, const TokenSourceFactory& load_tokens);

// `megamoe bench manifest make|verify|show|diff`. In  args  the words after `megamoe bench manifest`
int run_bench_manifest(const std::vector<std::string>& args, const TokenSourceFactory& load_tokens);

// `megamoe bench null-server`: answers with a programmed token schedule until interrupted, to calibrate the client.
int run_null_server(const std::vector<std::string>& args);

// `megamoe bench ...`: all of the above. In  args  the words after `megamoe bench`
int run_bench(const std::vector<std::string>& args, const TokenSourceFactory& load_tokens);

}  // namespace megamoe::lab
