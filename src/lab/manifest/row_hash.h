// The identity of prompts: what must be equal for two runs to have done the same work.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lab/core/sha256.h"
#include "lab/manifest/manifest.h"

namespace megamoe::lab {

// SHA-256 over the fields below in this order, each preceded by its length in bytes as a little-endian u64:
// id, role, text, ids (u32 array), in (u32), out (u32), at_us (i64), sess, turn (i64), gap_us (i64), params.
// Numbers are little-endian; an absent optional is a field of length 0.
// Spec  bench.md 7.2, algorithm v1 (the widths of turn and gap_us are fixed here)
Digest row_digest(const Row& row);

// content = over the digests of all rows, in order; prompts = over (text, in, out) of the measured rows only, so it is
// equal for manifests that differ in bookkeeping alone. Prompts that exist as ids only enter with the bytes of the id
// array.
std::string content_sha256(std::span<const Row> rows);
std::string prompts_sha256(std::span<const Row> rows);

// What one sent request says, whether taken from the manifest or from the body that left: the replay proof compares
// both.
struct SentPrompt {
    std::string_view id;
    std::string_view text;
    std::span<const std::uint32_t> ids;
    std::uint32_t max_tokens = 0;
    double temperature = 0;
    double top_p = 1;
    std::int32_t top_k = -1;
    bool ignore_eos = true;
};
Digest sent_digest(const SentPrompt& prompt);
// Over the digests of all sent rows, in manifest order.
std::string replay_sha256(std::span<const Digest> digests);

}  // namespace megamoe::lab
