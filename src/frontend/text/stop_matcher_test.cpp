#include "frontend/text/stop_matcher.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace megamoe::text {
namespace {

struct Outcome {
    std::string text;
    std::optional<std::size_t> matched;

    friend bool operator==(const Outcome&, const Outcome&) = default;
    friend void showValue(const Outcome& outcome, std::ostream& os) {
        os << '"' << outcome.text << "\" " << (outcome.matched ? static_cast<int>(*outcome.matched) : -1);
    }
};

// The definition: the first end of any stop string, and of those that end there the longest.
Outcome match_slowly(const std::vector<std::string>& stops, bool keep_stop, const std::string& text) {
    for (std::size_t end = 1; end <= text.size(); ++end) {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < stops.size(); ++i) {
            const bool ends_here = !stops[i].empty() && text.substr(0, end).ends_with(stops[i]);
            if (ends_here && (!best || stops[i].size() > stops[*best].size())) {
                best = i;
            }
        }
        if (best) {
            return {text.substr(0, keep_stop ? end : end - stops[*best].size()), best};
        }
    }
    return {text, std::nullopt};
}

std::size_t longest_open_prefix(const std::vector<std::string>& stops, const std::string& text) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
        for (std::size_t size = 1; size < stop.size(); ++size) {
            if (text.ends_with(stop.substr(0, size))) {
                longest = std::max(longest, size);
            }
        }
    }
    return longest;
}

rc::Gen<std::string> texts() {
    return rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
}

rc::Gen<std::vector<std::string>> stop_lists() {
    return rc::gen::resize(5, rc::gen::container<std::vector<std::string>>(texts()));
}

TEST(StopMatcher, WhateverTheCutTheOutcomeIsTheOneOfTheWholeText) {
    EXPECT_TRUE(rc::check([] {
        const auto stops = *stop_lists();
        const auto keep_stop = *rc::gen::arbitrary<bool>();
        const auto text = *texts();
        const Outcome expected = match_slowly(stops, keep_stop, text);

        for (std::size_t cut = 0; cut <= text.size(); ++cut) {
            StopMatcher matcher(stops, keep_stop);
            Outcome outcome;
            for (const std::string& piece : {text.substr(0, cut), text.substr(cut)}) {
                const StopMatcher::Output output = matcher.push(piece);
                outcome.text += output.text;
                outcome.matched = output.matched ? output.matched : outcome.matched;
            }
            outcome.text += matcher.flush();
            RC_ASSERT(outcome == expected);
            RC_ASSERT(matcher.stopped() == expected.matched.has_value());
        }
    }));
}

TEST(StopMatcher, HoldsBackExactlyTheLongestOpenPrefix) {
    EXPECT_TRUE(rc::check([] {
        const auto stops = *stop_lists();
        const auto text = *texts();
        StopMatcher matcher(stops);

        const StopMatcher::Output output = matcher.push(text);

        if (!output.matched) {
            RC_ASSERT(matcher.held_bytes() == longest_open_prefix(stops, text));
            RC_ASSERT(output.text + matcher.flush() == text);
        }
    }));
}

TEST(StopMatcher, RemovesTheStopStringAndAllBehindIt) {
    StopMatcher matcher({"\n\n", "END"});

    EXPECT_EQ(matcher.push("one E").text, "one ");
    const StopMatcher::Output output = matcher.push("ND two");

    EXPECT_EQ(output.text, "");
    EXPECT_EQ(output.matched, 1U);
    EXPECT_EQ(matcher.push("three").text, "");
    EXPECT_EQ(matcher.flush(), "");
}

TEST(StopMatcher, KeepsTheStopStringOnDemand) {
    StopMatcher matcher({"END"}, /*keep_stop=*/true);

    EXPECT_EQ(matcher.push("one END two").text, "one END");
}

TEST(StopMatcher, WithoutStopStringsAllTextPasses) {
    StopMatcher matcher({});

    EXPECT_EQ(matcher.push("any text").text, "any text");
    EXPECT_EQ(matcher.held_bytes(), 0U);
}

TEST(StopMatcher, NeverCutsACharacter) {
    StopMatcher matcher({"ê"});  // shares its first byte with é

    EXPECT_EQ(matcher.push("é").text, "é");
    EXPECT_EQ(matcher.held_bytes(), 0U);
}

}  // namespace
}  // namespace megamoe::text
