// The JSON body of a request, and what can be read back from it.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/client/backend.h"
#include "lab/core/sha256.h"
#include "lab/manifest/manifest.h"

namespace megamoe::lab {

enum class StreamUsage : std::uint8_t {
    kOff,
    kFinal,       // one count at the end
    kContinuous,  // a running count in every chunk: exact token times
};

struct BodyOptions {
    Backend backend = Backend::kOpenai;
    std::string model;  // as the server calls it
    PromptFormat format = PromptFormat::kText;
    Sampling sampling = {};
    bool stream = true;
    StreamUsage usage = StreamUsage::kFinal;
    bool min_tokens = true;         // together with ignore_eos
    std::string extra_json = "{}";  // merged in; may not touch prompt, length or stream
};

// The body for `row`. Sampling is always written out: servers have changed their defaults before.
// Error kInvalidArgument: the row cannot be said in this dialect, or extra_json overrides what makes the runs
//       comparable
[[nodiscard]] Result<std::string> build_body(const Row& row, const BodyOptions& options);

// Digest of what `body` will make a server do: prompt, length, sampling, after JSON decoding. Together with
// expected_digest() it proves that what was sent is what the manifest says.
// Error kInvalidArgument: not a body of this dialect
[[nodiscard]] Result<Digest> digest_of_body(const std::string& id, const std::string& body, Backend backend);
// The same, computed from the manifest.
Digest expected_digest(const Row& row, const BodyOptions& options);

}  // namespace megamoe::lab
