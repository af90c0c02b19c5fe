// HTTP messages as plain data.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megamoe::http {

struct Header {
    std::string name;
    std::string value;
};

struct Request {
    std::string method;           // "GET"
    std::string path;             // percent-decoded, without the query
    std::string query;            // as sent, without '?'
    std::vector<Header> headers;  // names in lower case
    std::string body;

    // Value of the first header of this (lower-case) name; empty if there is none.
    std::string_view header(std::string_view name) const;
    // Decoded value of a query parameter.
    std::optional<std::string> query_value(std::string_view name) const;
};

struct Response {
    int status = 200;
    std::string content_type = "application/json";
    std::string body{};
    std::vector<Header> headers{};  // besides content type, length and connection
};

// "Not Found"; "Unknown" for a status without a name.
std::string_view reason_phrase(int status);

// "%2F" -> "/"; a '%' without two hex digits stays as it is. `plus_is_space`: in query values.
std::string percent_decode(std::string_view text, bool plus_is_space);

// "/a/b?c=d" -> path and query of `request`.
void split_target(std::string_view target, Request& request);

}  // namespace megamoe::http
