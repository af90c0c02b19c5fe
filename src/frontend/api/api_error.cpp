#include "frontend/api/api_error.h"

#include <nlohmann/json.hpp>

namespace megamoe::api {
namespace {

int status_of(Errc code) {
    switch (code) {
        case Errc::kInvalidArgument:
        case Errc::kFailedPrecondition:
            return 400;
        case Errc::kNotFound:
            return 404;
        case Errc::kResourceExhausted:
        case Errc::kUnavailable:
            return 503;
        case Errc::kInternal:
            return 500;
    }
    return 500;
}

const char* type_of(int status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 429:
            return "rate_limit_error";
        case 503:
            return "unavailable_error";
        default:
            return status >= 500 ? "internal_error" : "invalid_request_error";
    }
}

nlohmann::ordered_json text_or_null(const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace

ApiError to_api_error(const Error& error) {
    return {.status = status_of(error.code), .message = to_string(error)};
}

std::string to_json(const ApiError& error) {
    const nlohmann::ordered_json body{{"error",
                                       {{"message", error.message},
                                        {"type", type_of(error.status)},
                                        {"param", text_or_null(error.param)},
                                        {"code", text_or_null(error.code)}}}};
    return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

http::Response to_response(const ApiError& error) {
    http::Response response{.status = error.status, .body = to_json(error)};
    if (error.status == 401) {
        response.headers.push_back({"WWW-Authenticate", "Bearer"});
    }
    if (error.status == 503) {
        response.headers.push_back({"Retry-After", "1"});
    }
    return response;
}

}  // namespace megamoe::api
