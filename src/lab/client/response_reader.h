// Turns the bytes of one HTTP answer into a request record. No sockets, no clock: bytes and times come in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lab/client/request_record.h"

namespace megamoe::lab {

struct ReadOptions {
    bool stream = true;        // false: one JSON body at the end
    bool fixed_length = true;  // the answer must have exactly the asked number of tokens
    bool save_text = false;
};

class ResponseReader {
  public:
    // `record` must outlive the reader; everything that is learnt goes into it.
    ResponseReader(RequestRecord& record, const ReadOptions& options);
    ~ResponseReader();
    ResponseReader(const ResponseReader&) = delete;
    ResponseReader& operator=(const ResponseReader&) = delete;

    // Bytes of one read, which all get the time `t_ns`.
    // Same  apart from times and `coalesced_events`, the record does not depend on how the bytes are split
    void feed(std::string_view bytes, std::int64_t t_ns);
    // The peer closed the connection.
    void end_of_stream(std::int64_t t_ns);

    // The answer is complete, or can never be understood.
    bool done() const;
    // After a complete answer: the connection may carry another request.
    bool keep_alive() const;
    // Decides the outcome of a request whose answer was read to the end. Call once, when done() or the peer has closed.
    void conclude();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace megamoe::lab
