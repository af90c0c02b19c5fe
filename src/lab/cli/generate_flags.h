// The flags that describe a manifest, shared by `bench serve` and `bench manifest make`. Internal to cli/: it shows
// CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "lab/cli/flags.h"
#include "lab/manifest/generate_options.h"

namespace megamoe::lab {

// Binds the flags of bench.md 3.3 and 3.4 to an options struct that outlives the parsing.
class GenerateFlags {
  public:
    GenerateFlags(CLI::App& app, GenerateOptions& options);

    // What CLI11 cannot say by itself; call after parsing.
    // Error kInvalidArgument: values outside their sets; a range ratio without its meaning
    [[nodiscard]] Result<Done> finish(const std::vector<std::string>& given);

    static const Unsupported& unsupported();

  private:
    GenerateOptions& options_;
    std::uint32_t output_len_ = 1024;
    std::string prompt_format_ = "text";
    std::string range_mode_ = "none";
    std::string token_weights_ = "uniform";
    std::string bos_policy_ = "auto";
    bool ignore_eos_ = false;
    bool no_ignore_eos_ = false;
};

}  // namespace megamoe::lab
