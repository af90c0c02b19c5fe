#include "lab/client/sse_parser.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace megamoe::lab {
namespace {

std::vector<std::string> parse(const std::vector<std::string>& pieces) {
    SseParser parser;
    std::vector<std::string> events;
    const SseParser::OnEvent keep = [&](std::string_view data) { events.emplace_back(data); };
    for (const std::string& piece : pieces) {
        parser.feed(piece, keep);
    }
    parser.finish(keep);
    return events;
}

const std::string kStream =
    "\xEF\xBB\xBF: hello\r\nid: 1\r\ndata: one\r\n\r\n"
    "data:two\ndata: lines\n\n"
    "event: x\rdata:  three\r\r"
    "retry: 5\n\ndata\n\ndata: {\"a\":\"\xC3\xA4\"}\n\n:c\n\ndata: last";
const std::vector<std::string> kEvents{"one", "two\nlines", " three", "", "{\"a\":\"\xC3\xA4\"}", "last"};

TEST(SseParser, ReadsAllLineEndsCommentsAndMultiLineData) {
    EXPECT_EQ(parse({kStream}), kEvents);
}

TEST(SseParser, EverySplitPointGivesTheSameEvents) {
    for (std::size_t at = 0; at <= kStream.size(); ++at) {
        EXPECT_EQ(parse({kStream.substr(0, at), kStream.substr(at)}), kEvents) << "split at " << at;
    }
}

TEST(SseParser, OneByteReadsGiveTheSameEvents) {
    std::vector<std::string> bytes;
    for (const char c : kStream) {
        bytes.emplace_back(1, c);
    }

    EXPECT_EQ(parse(bytes), kEvents);
}

TEST(SseParser, AnyBytesSplitAnywhereGiveTheSameEvents) {
    EXPECT_TRUE(rc::check([](const std::vector<std::string>& pieces) {
        std::string whole;
        for (const std::string& piece : pieces) {
            whole += piece;
        }
        RC_ASSERT(parse(pieces) == parse({whole}));
    }));
}

TEST(SseParser, RandomSequencesOfItsOwnSyntaxSplitAnywhereGiveTheSameEvents) {
    EXPECT_TRUE(rc::check([] {
        const auto pieces = *rc::gen::container<std::vector<std::string>>(
            rc::gen::element<std::string>("data", ":", " ", "\r", "\n", "x", "\xEF\xBB\xBF", "event", "data: y\r\n"));
        std::string whole;
        for (const std::string& piece : pieces) {
            whole += piece;
        }
        RC_ASSERT(parse(pieces) == parse({whole}));
    }));
}

TEST(SseParser, ATenMegabyteLineIsNoSpecialCase) {
    const std::string big(10 << 20, 'x');

    EXPECT_EQ(parse({"data: " + big.substr(0, 1 << 20), big.substr(1 << 20) + "\n\n"}), std::vector{big});
}

}  // namespace
}  // namespace megamoe::lab
