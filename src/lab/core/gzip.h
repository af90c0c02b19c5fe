// Lines of text in gzip files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace megamoe::lab {

// The same lines give the same bytes: modification time 0, no name, OS byte 255, one fixed level.
class GzipWriter {
  public:
    // Error kInvalidArgument: the file cannot be created
    [[nodiscard]] static Result<GzipWriter> create(const std::string& path);
    GzipWriter(GzipWriter&&) noexcept;
    ~GzipWriter();

    // Appends `line` and a line feed.
    void add_line(std::string_view line);
    // Error kInternal: the disk did not take everything
    [[nodiscard]] Result<Done> finish();

  private:
    struct State;
    explicit GzipWriter(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

// Reads gzip, and plain text just as well.
class LineReader {
  public:
    // Error kNotFound
    [[nodiscard]] static Result<LineReader> open(const std::string& path);
    LineReader(LineReader&&) noexcept;
    ~LineReader();

    // The next line without its line feed; none at the end of the file.
    // Error kInvalidArgument: damaged or truncated gzip data
    [[nodiscard]] Result<std::optional<std::string>> next();

  private:
    struct State;
    explicit LineReader(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace megamoe::lab
