// Prompts in the four forms that clients send: a string, token ids, or a list of either. Internal to the parsers.
#pragma once

#include <string_view>
#include <vector>

#include "frontend/api/fields.h"
#include "frontend/api/request_types.h"

namespace megamoe::api {

struct Prompts {
    std::vector<Prompt> prompts;
    bool is_batch = false;  // a list of prompts, even of one
};

// Complains into `fields` if the field is missing, empty, mixed, or holds ids outside [0, vocab_size).
Prompts read_prompts(Fields& fields, std::string_view name, std::int32_t vocab_size);

}  // namespace megamoe::api
