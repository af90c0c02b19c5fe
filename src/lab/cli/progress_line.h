// Progress on stderr: a line that overwrites itself in a terminal, a line every ten seconds in a log.
#pragma once

#include <string>
#include <string_view>

#include "lab/client/load_client.h"

namespace megamoe::lab {

class ProgressLine {
  public:
    explicit ProgressLine(bool quiet);
    ~ProgressLine();  // clears what stands there
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;

    void show(std::string_view phase, const Progress& progress);
    void show(std::string_view text);
    void clear();

  private:
    bool quiet_;
    bool terminal_;
    bool visible_ = false;
    std::int64_t last_ns_ = 0;
};

}  // namespace megamoe::lab
