// Request bodies -> request types. Pure functions: what they refuse, they refuse by the field's name, value and bound.
#pragma once

#include <string_view>

#include "frontend/api/api_error.h"
#include "frontend/api/request_types.h"

namespace megamoe::api {

// Error 400 for each: not JSON (with the position), not an object, a field of the wrong type or out of range, or a
//       field that asks for what this server cannot do. Fields that change nothing here (`user`, `store`, ...) are
//       ignored, and so are unknown ones. null = not given.
// Same  pure; no input throws or recurses deeper than the nesting bound
// Spec  serving spec, 9.2 and 9.3
[[nodiscard]] Parsed<CompletionRequest> parse_completion(std::string_view body, const Bounds& bounds);
[[nodiscard]] Parsed<ChatRequest> parse_chat(std::string_view body, const Bounds& bounds);
[[nodiscard]] Parsed<GenerateRequest> parse_generate(std::string_view body, const Bounds& bounds);
[[nodiscard]] Parsed<TokenizeRequest> parse_tokenize(std::string_view body);
[[nodiscard]] Parsed<DetokenizeRequest> parse_detokenize(std::string_view body, const Bounds& bounds);
[[nodiscard]] Parsed<AbortRequest> parse_abort(std::string_view body);

}  // namespace megamoe::api
