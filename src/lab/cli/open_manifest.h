// The manifest of a `bench serve`: replayed when it exists, made when it does not.
#pragma once

#include "base/result.h"
#include "lab/cli.h"

namespace megamoe::lab {

struct OpenedManifest {
    Manifest manifest;
    std::string path;  // empty: made in memory, written nowhere yet
    bool created = false;
};

// Error kFailedPrecondition: the file is damaged, or was made with other settings than the flags ask for (all are
//       listed); kInvalidArgument: it cannot be made from these flags; kNotFound: it is missing although it had to be
//       loaded
[[nodiscard]] Result<OpenedManifest> open_manifest(const BenchServeOptions& options,
                                                   const TokenSourceFactory& load_tokens);

// How many rows of each kind a pass uses: what the flags say, or all.
void fill_counts(const BenchServeOptions& options, const Manifest& manifest, MeasureOptions& measure);

}  // namespace megamoe::lab
