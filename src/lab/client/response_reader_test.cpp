#include "lab/client/response_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace megamoe::lab {
namespace {

std::string chunk(const std::string& data) {
    return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

std::string token(int so_far, const std::string& text) {
    return fmt::format(
        R"(data: {{"choices":[{{"index":0,"text":"{}","finish_reason":null}}],"usage":{{"prompt_tokens":5,"completion_tokens":{}}}}})"
        "\n\n",
        text, so_far);
}

const std::string kHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kLast =
    "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3,"
    "\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\ndata: [DONE]\n\n";
const std::string kStream =
    kHead + chunk(token(1, "a")) + chunk(token(2, "\\u00e4")) + chunk(token(3, "c")) + chunk(kLast) + "0\r\n\r\n";

RequestRecord read(const std::vector<std::string>& pieces, ReadOptions options = {.save_text = true},
                   bool close = false) {
    RequestRecord record;
    record.asked_out = 3;
    ResponseReader reader(record, options);
    std::int64_t t = 1000;
    for (const std::string& piece : pieces) {
        reader.feed(piece, t);
        t += 1000;
    }
    if (close) {
        reader.end_of_stream(t);
    }
    reader.conclude();
    return record;
}

TEST(ResponseReader, ReadsTokensUsageAndEndOfAStream) {
    const RequestRecord record = read({kStream});

    EXPECT_EQ(record.outcome, Outcome::kOk) << record.detail;
    EXPECT_EQ(record.text,
              "a\xC3\xA4"
              "c");
    EXPECT_EQ(record.completion_tokens, 3U);
    EXPECT_EQ(record.prompt_tokens, 5U);
    EXPECT_EQ(record.cached_tokens, 2U);
    EXPECT_EQ(record.finish_reason, "length");
    EXPECT_EQ(record.chunks.size(), 3U);
    EXPECT_EQ(record.coalesced_events, 5U);
}

TEST(ResponseReader, EverySplitPointGivesTheSameRecord) {
    const RequestRecord whole = read({kStream});
    for (std::size_t at = 1; at < kStream.size(); ++at) {
        const RequestRecord record = read({kStream.substr(0, at), kStream.substr(at)});

        ASSERT_EQ(record.outcome, Outcome::kOk) << at << record.detail;
        EXPECT_EQ(record.text, whole.text) << at;
        EXPECT_EQ(record.text_hash, whole.text_hash) << at;
        EXPECT_EQ(record.chunks.size(), whole.chunks.size()) << at;
        EXPECT_EQ(record.completion_tokens, whole.completion_tokens) << at;
    }
}

TEST(ResponseReader, OneByteReadsGiveTheSameRecord) {
    std::vector<std::string> bytes;
    for (const char c : kStream) {
        bytes.emplace_back(1, c);
    }

    const RequestRecord record = read(bytes);

    EXPECT_EQ(record.outcome, Outcome::kOk);
    EXPECT_EQ(record.text_hash, read({kStream}).text_hash);
    EXPECT_EQ(record.coalesced_events, 0U);
}

TEST(ResponseReader, TimesAreThoseOfTheReads) {
    const std::string role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    const RequestRecord record = read({kHead, chunk(role), chunk(token(1, "a")),
                                       chunk(token(2, "b")) + chunk(token(3, "c")), chunk(kLast) + "0\r\n\r\n"});

    EXPECT_EQ(record.t_head, 1000);
    EXPECT_EQ(record.t_role, 2000);
    EXPECT_EQ(record.t_first, 3000);
    EXPECT_EQ(record.t_last, 4000);
    EXPECT_EQ(record.t_end, 5000);
    EXPECT_EQ(record.chunks[1].t_ns, record.chunks[2].t_ns);
}

TEST(ResponseReader, AStreamWithoutItsEndMarkerIsTruncated) {
    const RequestRecord record = read({kHead + chunk(token(1, "a"))}, {}, /*close=*/true);

    EXPECT_EQ(record.outcome, Outcome::kTruncated);
}

TEST(ResponseReader, AnAnswerThatEndsWithTheConnectionIsComplete) {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    const std::string body = token(1, "a") + token(2, "b") + token(3, "c") + "data: [DONE]";  // no blank line at close

    EXPECT_EQ(read({head + body}, {}, /*close=*/true).outcome, Outcome::kOk);
}

TEST(ResponseReader, AnErrorEventInsideAStreamIsAFailure) {
    const std::string error = "data: {\"error\":{\"message\":\"out of pages\",\"type\":\"x\"}}\n\ndata: [DONE]\n\n";
    const RequestRecord record = read({kHead + chunk(token(1, "a")) + chunk(error) + "0\r\n\r\n"});

    EXPECT_EQ(record.outcome, Outcome::kServerAbort);
    EXPECT_EQ(record.detail, "out of pages");
}

TEST(ResponseReader, AnAbortAsFinishReasonIsAFailure) {
    const std::string abort = "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"abort\"}]}\n\ndata: [DONE]\n\n";

    EXPECT_EQ(read({kHead + chunk(token(1, "a")) + chunk(abort) + "0\r\n\r\n"}).outcome, Outcome::kServerAbort);
}

TEST(ResponseReader, TooFewAndTooManyTokensAreFailuresOnlyAtFixedLength) {
    const std::string two =
        kHead + chunk(token(1, "a")) + chunk(token(2, "b")) + chunk("data: [DONE]\n\n") + "0\r\n\r\n";
    const std::string four = kHead + chunk(token(4, "abcd")) + chunk("data: [DONE]\n\n") + "0\r\n\r\n";

    EXPECT_EQ(read({two}).outcome, Outcome::kShort);
    EXPECT_EQ(read({four}).outcome, Outcome::kLong);
    EXPECT_EQ(read({two}, {.fixed_length = false}).outcome, Outcome::kOk);
}

TEST(ResponseReader, OtherEndingsHaveTheirOwnNames) {
    const std::string refused = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nfull";
    EXPECT_EQ(read({refused}).outcome, Outcome::kHttpError);
    EXPECT_EQ(read({refused}).detail, "status 503: full");
    EXPECT_EQ(read({kHead + chunk("data: [DONE]\n\n") + "0\r\n\r\n"}).outcome, Outcome::kEmpty);
    EXPECT_EQ(read({kHead + chunk("data: {broken\n\ndata: [DONE]\n\n") + "0\r\n\r\n"}).outcome, Outcome::kBadStream);
    EXPECT_EQ(read({"SSH-2.0-OpenSSH\r\n\r\n"}).outcome, Outcome::kBadStream);
    EXPECT_EQ(read({}, {}, /*close=*/true).outcome, Outcome::kConnError);
}

TEST(ResponseReader, AWholeBodyGivesCountsButNoTokenTimes) {
    const std::string body =
        R"({"choices":[{"text":"abc","finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":3}})";
    const RequestRecord record =
        read({fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.size(), body)}, {.stream = false});

    EXPECT_EQ(record.outcome, Outcome::kOk) << record.detail;
    EXPECT_EQ(record.completion_tokens, 3U);
    EXPECT_EQ(record.t_first, 0);
    EXPECT_EQ(record.t_last, record.t_end);
}

TEST(ResponseReader, ChatReasoningAndToolCallsAreTokensToo) {
    const auto delta = [](const std::string& inner) { return "data: {\"choices\":[{\"delta\":" + inner + "}]}\n\n"; };
    const std::string body =
        delta(R"({"role":"assistant","content":""})") + delta(R"({"reasoning_content":"think"})") +
        delta(R"({"content":"say"})") +
        delta(R"({"tool_calls":[{"index":0,"type":"function","function":{"name":"f","arguments":"{}"}}]})") +
        "data: [DONE]\n\n";
    const RequestRecord record = read({kHead + chunk(body) + "0\r\n\r\n"}, {.fixed_length = false, .save_text = true});

    EXPECT_EQ(record.outcome, Outcome::kOk);
    EXPECT_EQ(record.chunks.size(), 3U);
    EXPECT_EQ(record.text, "thinksayf{}");
}

TEST(ResponseReader, GenerateRepeatsTheTextAndCounts) {
    const auto event = [](const std::string& text, int n) {
        return fmt::format(
            R"(data: {{"text":"{}","meta_info":{{"prompt_tokens":5,"completion_tokens":{},"finish_reason":{}}}}})"
            "\n\n",
            text, n, n == 3 ? R"({"type":"length"})" : "null");
    };
    const RequestRecord record = read({kHead + chunk(event("a", 1)) + chunk(event("ab", 2)) + chunk(event("abc", 3)) +
                                       chunk("data: [DONE]\n\n") + "0\r\n\r\n"});

    EXPECT_EQ(record.outcome, Outcome::kOk) << record.detail;
    EXPECT_EQ(record.text, "abc");
    EXPECT_EQ(record.finish_reason, "length");
    EXPECT_EQ(record.chunks.back().tokens_so_far, 3U);
}

}  // namespace
}  // namespace megamoe::lab
