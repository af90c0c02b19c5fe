#include "lab/core/gzip.h"

#include <zlib.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <vector>

#include "base/check.h"

namespace megamoe::lab {
namespace {

constexpr int kLevel = 6;
constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for a gzip wrapper
constexpr std::size_t kBlock = 1 << 16;

}  // namespace

struct GzipWriter::State {
    std::ofstream file;
    std::string path;
    z_stream stream{};
    gz_header header{};
    std::vector<Bytef> out = std::vector<Bytef>(kBlock);

    ~State() { deflateEnd(&stream); }

    void deflate_all(std::string_view bytes, int flush) {
        // zlib's interface predates const; it does not write through next_in.
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
        stream.avail_in = static_cast<uInt>(bytes.size());
        do {
            stream.next_out = out.data();
            stream.avail_out = static_cast<uInt>(out.size());
            MM_CHECK(deflate(&stream, flush) != Z_STREAM_ERROR);
            file.write(reinterpret_cast<const char*>(out.data()),
                       static_cast<std::streamsize>(out.size() - stream.avail_out));
        } while (stream.avail_out == 0);
    }
};

GzipWriter::GzipWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
GzipWriter::GzipWriter(GzipWriter&&) noexcept = default;
GzipWriter::~GzipWriter() = default;

Result<GzipWriter> GzipWriter::create(const std::string& path) {
    auto state = std::make_unique<State>();
    state->path = path;
    state->file.open(path, std::ios::binary | std::ios::trunc);
    if (!state->file) {
        return invalid("cannot create " + path, "check that the folder exists and can be written");
    }
    MM_CHECK(deflateInit2(&state->stream, kLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    state->header.os = 255;
    MM_CHECK(deflateSetHeader(&state->stream, &state->header) == Z_OK);
    return GzipWriter(std::move(state));
}

void GzipWriter::add_line(std::string_view line) {
    for (; line.size() > kBlock; line.remove_prefix(kBlock)) {
        state_->deflate_all(line.substr(0, kBlock), Z_NO_FLUSH);
    }
    state_->deflate_all(line, Z_NO_FLUSH);
    state_->deflate_all("\n", Z_NO_FLUSH);
}

Result<Done> GzipWriter::finish() {
    state_->deflate_all({}, Z_FINISH);
    state_->file.close();
    if (!state_->file) {
        return Error{Errc::kInternal, "could not write all of " + state_->path, "check the free disk space"};
    }
    return Done{};
}

struct LineReader::State {
    gzFile file = nullptr;
    std::string path;
    std::array<char, kBlock> block{};
    std::size_t begin = 0;
    std::size_t end = 0;

    ~State() { gzclose(file); }
};

LineReader::LineReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

Result<LineReader> LineReader::open(const std::string& path) {
    auto state = std::make_unique<State>();
    state->path = path;
    state->file = gzopen(path.c_str(), "rb");
    if (state->file == nullptr) {
        return Error{Errc::kNotFound, "cannot read " + path, "check the path and its permissions"};
    }
    return LineReader(std::move(state));
}

Result<std::optional<std::string>> LineReader::next() {
    State& s = *state_;
    std::string line;
    for (;;) {
        if (s.begin == s.end) {
            const int got = gzread(s.file, s.block.data(), static_cast<unsigned>(s.block.size()));
            int code = Z_OK;
            const char* reason = gzerror(s.file, &code);
            if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
                return invalid(s.path + ": damaged gzip data: " + reason, "copy or create the file again");
            }
            if (got == 0) {
                return line.empty() ? std::optional<std::string>() : std::optional(std::move(line));
            }
            s.begin = 0;
            s.end = static_cast<std::size_t>(got);
        }
        const std::string_view rest(s.block.data() + s.begin, s.end - s.begin);
        const std::size_t feed = rest.find('\n');
        line += rest.substr(0, feed);
        if (feed != std::string_view::npos) {
            s.begin += feed + 1;
            return std::optional(std::move(line));
        }
        s.begin = s.end;
    }
}

}  // namespace megamoe::lab
