// Errors as a client sees them: HTTP status and OpenAI's error object.
#pragma once

#include <string>
#include <variant>

#include "base/result.h"
#include "frontend/http/message.h"

namespace megamoe::api {

struct ApiError {
    int status = 400;
    std::string message;
    std::string param{};  // the field at fault; empty = none
    std::string code{};   // a word for programs, such as "model_not_found"; empty = none
};

// A value, or what to answer instead.
template <class T>
using Parsed = std::variant<T, ApiError>;

// kInvalidArgument 400, kNotFound 404, kFailedPrecondition 400, kInternal 500; kResourceExhausted (queue full) and
// kUnavailable 503.
ApiError to_api_error(const Error& error);

// {"error":{"message":…,"type":…,"param":…,"code":…}}
std::string to_json(const ApiError& error);
// 401 names the scheme, 503 says when to retry.
http::Response to_response(const ApiError& error);

}  // namespace megamoe::api
