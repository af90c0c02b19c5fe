#include "frontend/http/answer.h"

#include <gtest/gtest.h>

#include <string>

namespace megamoe::http {
namespace {

Answer make_answer(const Answer::Options& options = {}) {
    return Answer(options, [] {});
}

TEST(Answer, AWholeAnswerNamesItsLength) {
    Answer answer = make_answer();

    answer.respond({.body = "{}"});

    const std::string bytes = answer.take();
    EXPECT_TRUE(bytes.starts_with("HTTP/1.1 200 OK\r\n")) << bytes;
    EXPECT_NE(bytes.find("\r\nContent-Length: 2\r\n"), std::string::npos) << bytes;
    EXPECT_TRUE(bytes.ends_with("\r\n\r\n{}")) << bytes;
    EXPECT_TRUE(answer.is_complete());
}

TEST(Answer, AHeadAnswerKeepsTheLengthAndLosesTheBody) {
    Answer answer = make_answer({.head_only = true});

    answer.respond({.body = "{}"});

    const std::string bytes = answer.take();
    EXPECT_NE(bytes.find("\r\nContent-Length: 2\r\n"), std::string::npos) << bytes;
    EXPECT_TRUE(bytes.ends_with("\r\n\r\n")) << bytes;
}

TEST(Answer, AStreamIsChunked) {
    Answer answer = make_answer();
    answer.begin({});
    answer.take();

    answer.send("0123456789abcdefg");
    answer.finish();

    EXPECT_EQ(answer.take(), "11\r\n0123456789abcdefg\r\n0\r\n\r\n");
}

TEST(Answer, AnEmptyPieceDoesNotEndTheStream) {
    Answer answer = make_answer();
    answer.begin({});
    answer.take();

    answer.send("");

    EXPECT_EQ(answer.take(), "");
}

TEST(Answer, AStreamToAnOldClientEndsWithTheConnection) {
    Answer answer = make_answer({.http_1_0 = true});
    answer.begin({});
    EXPECT_EQ(answer.take().find("chunked"), std::string::npos);

    answer.send("text");
    answer.finish();

    EXPECT_EQ(answer.take(), "text");
    EXPECT_FALSE(answer.keeps_alive());
}

TEST(Answer, IsSlowWhileMoreThanTheBufferWaitsAndSaysWhenItHasDrained) {
    Answer answer = make_answer({.slow_bytes = 300});
    int drained = 0;
    answer.on_drained([&] { ++drained; });
    answer.begin({});
    answer.send(std::string(400, 'x'));
    EXPECT_TRUE(answer.is_slow());

    answer.take();
    EXPECT_TRUE(answer.is_slow()) << "in flight still counts";
    answer.written();

    EXPECT_FALSE(answer.is_slow());
    EXPECT_EQ(drained, 1);
}

TEST(Answer, TellsOfADisconnectOnceAndIgnoresTheRest) {
    Answer answer = make_answer();
    int gone = 0;
    answer.on_disconnect([&] { ++gone; });
    answer.begin({});

    answer.disconnect();
    answer.disconnect();
    answer.send("late");
    answer.finish();

    EXPECT_EQ(gone, 1);
    EXPECT_FALSE(answer.has_bytes());
}

TEST(Answer, ADisconnectBehindACompleteAnswerIsNoNews) {
    Answer answer = make_answer();
    bool told = false;
    answer.on_disconnect([&] { told = true; });
    answer.respond({.body = "{}"});

    answer.disconnect();

    EXPECT_FALSE(told);
    EXPECT_TRUE(answer.has_bytes());
}

TEST(Answer, AnAbandonedRequestIsA500) {
    Answer answer = make_answer();

    answer.abandon();

    EXPECT_TRUE(answer.take().starts_with("HTTP/1.1 500 "));
    EXPECT_TRUE(answer.is_complete());
}

TEST(Message, QueryValuesAreDecodedAndPathsKeepTheirPlus) {
    Request request;

    split_target("/v1/models/a%2Fb+c?x=1&dp_rank=%32+3&flag", request);

    EXPECT_EQ(request.path, "/v1/models/a/b+c");
    EXPECT_EQ(request.query_value("dp_rank"), "2 3");
    EXPECT_EQ(request.query_value("flag"), "");
    EXPECT_EQ(request.query_value("y"), std::nullopt);
}

TEST(Message, BrokenPercentEscapesStayAsTheyAre) {
    EXPECT_EQ(percent_decode("%", false), "%");
    EXPECT_EQ(percent_decode("%4", false), "%4");
    EXPECT_EQ(percent_decode("%zz%41", false), "%zzA");
}

}  // namespace
}  // namespace megamoe::http
