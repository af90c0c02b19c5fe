// Makes the rows of a manifest.
#pragma once

#include "base/result.h"
#include "lab/manifest/generate_options.h"
#include "lab/manifest/manifest.h"
#include "lab/manifest/token_source.h"

namespace megamoe::lab {

// One canary row, then the warm-up rows, then the measured ones.
//
// Error kInvalidArgument: options that check() refuses, a data file that cannot be read or has too few usable records
// Same  one seed gives one manifest, whatever the number of threads; row i of a role does not change when the number of
//       rows of any role does
// Cost  about three encodes a text row, spread over the cores
// Spec  bench.md 4.1 to 4.4
[[nodiscard]] Result<Manifest> generate_manifest(const GenerateOptions& options, const TokenSource& tokens);

}  // namespace megamoe::lab
