// Chat messages of a request. Internal to the parsers.
#pragma once

#include <vector>

#include "frontend/api/fields.h"
#include "frontend/text/chat_encoder.h"

namespace megamoe::api {

// The field `messages`, at least one. Complains into `fields` about roles, contents and parts that are not text.
std::vector<text::ChatMessage> read_messages(Fields& fields);

}  // namespace megamoe::api
