// The fixed prompt texts of the V4 family. They ship with each checkpoint, in `encoding/encoding_dsv4.py`.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace megamoe::text {

struct PromptConstants {
    std::string tools_head;            // before the tool schemas
    std::string tools_tail;            // behind them
    std::string response_format_head;  // before the JSON schema
    std::string effort_high;           // put before the first message in thinking mode; empty = this level has no text
    std::string effort_max;
};

// Takes the texts out of `model_dir`/encoding/encoding_dsv4.py (preview and official form) and compares their SHA-256
// with the known ones, so that a text is right to the byte or not used.
//
// Error kNotFound: no such file, which is normal for a checkpoint without tools; kInvalidArgument: a text is missing or
//       has another hash
// Spec  model spec, 6.5 and 6.6
[[nodiscard]] Result<PromptConstants> load_prompt_constants(const std::filesystem::path& model_dir);
// The same from the file's content; `name` stands for the file in error texts.
[[nodiscard]] Result<PromptConstants> parse_prompt_constants(std::string_view python, const std::string& name);

}  // namespace megamoe::text
