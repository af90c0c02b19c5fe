// JSON pieces that the presenters share. Internal to them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "frontend/api/presenter.h"

namespace megamoe::api {

using Json = nlohmann::ordered_json;

// One line. Bytes that are not UTF-8 become U+FFFD; our own texts have none.
std::string dump(const Json& value);

// "stop", "length", "abort"; null while it runs.
Json finish_word(engine::FinishReason reason);
// The stop token, the stop string, or null.
Json matched_value(const Matched& matched);
Json usage_json(const Usage& usage);

// The text of one token: U+FFFD for each byte that alone is no character.
std::string token_text(const text::Tokenizer& tokenizer, std::int32_t token);

// Events of the OpenAI endpoints: all parts but the choice are the same in each, so they are written once.
class EventWriter {
  public:
    EventWriter(const AnswerHead& head, std::string_view object, const GenerationOptions& options);

    // One event with one choice; with the usage so far if the request asked for it.
    void add(const Json& choice, const Usage& usage, std::string& out) const;
    // The last event, with the usage and no choice, if the request asked for it.
    void add_usage(const Usage& total, std::string& out) const;

  private:
    std::string begin_;  // data: {"id":...,"choices":[
    bool include_usage_;
    bool continuous_usage_;
};

// The whole answer of the OpenAI endpoints.
std::string whole_answer(const AnswerHead& head, std::string_view object, Json choices, const Usage& total);

}  // namespace megamoe::api
