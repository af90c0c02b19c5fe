// Manifests as files: gzip of JSON lines, one header and then one row a line.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/manifest/manifest.h"

namespace megamoe::lab {

// Computes both hashes of `manifest` and writes it. The file appears only when complete.
// Same    equal manifests give equal bytes
// Error   kInvalidArgument: text that is not UTF-8; a folder that cannot be written
// Spec    bench.md 7.1
[[nodiscard]] Result<Done> write_manifest(Manifest& manifest, const std::string& path);

// Reads a manifest and recomputes every hash in it; embedded hashes are checked, never trusted.
// Error   kNotFound: no such file; kFailedPrecondition: it was changed or damaged (the text names the first bad row)
[[nodiscard]] Result<Manifest> read_manifest(const std::string& path);

}  // namespace megamoe::lab
