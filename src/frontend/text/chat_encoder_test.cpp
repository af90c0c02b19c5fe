#include "frontend/text/chat_encoder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "frontend/text/tokenizer.h"

namespace megamoe::text {
namespace {

using Messages = std::vector<ChatMessage>;

const std::string kBos = "<｜begin▁of▁sentence｜>";
const std::string kEos = "<｜end▁of▁sentence｜>";

constexpr ChatOptions kChat{};
constexpr ChatOptions kThinking{.thinking = true};
constexpr ChatOptions kKeepThinking{.thinking = true, .drop_thinking = false};

// Stand-ins: the real texts come with a checkpoint.
const PromptConstants kConstants{"TOOLS1\n", "\nTOOLS2", "FORMAT\n", "HIGH\n", "MAX\n"};

ChatMessage system(std::string content) {
    return {.role = Role::kSystem, .content = std::move(content)};
}
ChatMessage developer(std::string content) {
    return {.role = Role::kDeveloper, .content = std::move(content)};
}
ChatMessage user(std::string content) {
    return {.role = Role::kUser, .content = std::move(content)};
}
ChatMessage reminder(std::string content) {
    return {.role = Role::kLatestReminder, .content = std::move(content)};
}
ChatMessage assistant(std::string content, std::string reasoning = {}) {
    return {.role = Role::kAssistant, .content = std::move(content), .reasoning = std::move(reasoning)};
}
ChatMessage tool(std::string id, std::string content) {
    return {.role = Role::kTool, .content = std::move(content), .tool_call_id = std::move(id)};
}
ChatMessage calls(std::vector<ToolCall> tool_calls, std::string reasoning = {}) {
    return {.role = Role::kAssistant, .reasoning = std::move(reasoning), .tool_calls = std::move(tool_calls)};
}
ChatMessage with_task(ChatMessage message, Task task) {
    message.task = task;
    return message;
}

std::string encode(const Messages& messages, const ChatOptions& options, const PromptConstants* constants = nullptr) {
    auto prompt = encode_chat(messages, options, constants);
    return prompt ? std::move(prompt).take() : "error: " + to_string(prompt.error());
}

// The worked examples of the model spec, 6.9.

TEST(ChatEncoder, AUserTurnEndsWithTheGenerationPrompt) {
    EXPECT_EQ(encode({user("Hi")}, kChat), kBos + "<｜User｜>Hi<｜Assistant｜></think>");
    EXPECT_EQ(encode({user("Hi")}, kThinking), kBos + "<｜User｜>Hi<｜Assistant｜><think>");
}

TEST(ChatEncoder, EarlierReasoningIsForgottenAndItsTurnClosed) {
    const Messages messages{system("Be brief."), user("2+2?"), assistant("4", "add"), user("3+3?")};

    EXPECT_EQ(encode(messages, kThinking),
              kBos + "Be brief.<｜User｜>2+2?<｜Assistant｜></think>4" + kEos + "<｜User｜>3+3?<｜Assistant｜><think>");
    EXPECT_EQ(encode(messages, kKeepThinking), kBos + "Be brief.<｜User｜>2+2?<｜Assistant｜><think>add</think>4" +
                                                   kEos + "<｜User｜>3+3?<｜Assistant｜><think>");
    EXPECT_EQ(encode(messages, kChat), kBos + "Be brief.<｜User｜>2+2?<｜Assistant｜></think>4" + kEos +
                                           "<｜User｜>3+3?<｜Assistant｜></think>");
}

TEST(ChatEncoder, ToolsKeepTheReasoningAndTheirResultsJoinTheUserTurn) {
    ChatMessage with_tools = system("S");
    with_tools.tools = {R"({"name":"lookup","parameters":{}})"};
    const Messages messages{with_tools, user("Q"),
                            calls({{"c1", "lookup", R"({"id":7,"tag":"a b","opt":null,"xs":[1,2]})"}}, "need row"),
                            tool("c1", "{\"v\": 1}"), user("go on")};

    EXPECT_EQ(encode(messages, kThinking, &kConstants),
              kBos +
                  "S\n\nTOOLS1\n{\"name\": \"lookup\", \"parameters\": {}}\nTOOLS2"
                  "<｜User｜>Q<｜Assistant｜><think>need row</think>\n\n"
                  "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"lookup\">\n"
                  "<｜DSML｜parameter name=\"id\" string=\"false\">7</｜DSML｜parameter>\n"
                  "<｜DSML｜parameter name=\"tag\" string=\"true\">a b</｜DSML｜parameter>\n"
                  "<｜DSML｜parameter name=\"opt\" string=\"false\">null</｜DSML｜parameter>\n"
                  "<｜DSML｜parameter name=\"xs\" string=\"false\">[1, 2]</｜DSML｜parameter>\n"
                  "</｜DSML｜invoke>\n</｜DSML｜tool_calls>" +
                  kEos + "<｜User｜><tool_result>{\"v\": 1}</tool_result>\n\ngo on<｜Assistant｜><think>");
}

TEST(ChatEncoder, ATaskTakesThePlaceOfTheGenerationPrompt) {
    EXPECT_EQ(encode({with_task(user("weather?"), Task::kAction)}, kChat),
              kBos + "<｜User｜>weather?<｜Assistant｜></think><｜action｜>");
    EXPECT_EQ(encode({with_task(user("weather?"), Task::kAction)}, kThinking),
              kBos + "<｜User｜>weather?<｜Assistant｜><think><｜action｜>");
    EXPECT_EQ(encode({with_task(user("weather?"), Task::kQuery)}, kThinking), kBos + "<｜User｜>weather?<｜query｜>");
}

TEST(ChatEncoder, NeighbouringUserMessagesAreOneTurn) {
    EXPECT_EQ(encode({user("a"), user("b"), assistant("c"), user("d")}, kChat),
              kBos + "<｜User｜>a\n\nb<｜Assistant｜></think>c" + kEos + "<｜User｜>d<｜Assistant｜></think>");
}

// Rules of 6.3.

TEST(ChatEncoder, ATextDoesNotJoinATurnWithATaskButAToolResultDoes) {
    const ChatMessage first = with_task(user("a"), Task::kQuery);

    EXPECT_EQ(encode({first, user("b")}, kChat), kBos + "<｜User｜>a<｜User｜>b<｜Assistant｜></think>");
    EXPECT_EQ(encode({first, tool("x", "r")}, kChat), kBos + "<｜User｜>a\n\n<tool_result>r</tool_result><｜query｜>");
}

TEST(ChatEncoder, TheTaskOfAMessageThatJoinsATurnIsLost) {
    EXPECT_EQ(encode({user("a"), with_task(user("b"), Task::kQuery)}, kChat),
              kBos + "<｜User｜>a\n\nb<｜Assistant｜></think>");
}

TEST(ChatEncoder, ToolResultsStandInTheOrderOfTheirCalls) {
    const Messages messages{calls({{"1", "f", "{}"}, {"2", "g", "{}"}, {"3", "h", "{}"}}), tool("3", "three"),
                            user("text"), tool("1", "one"), tool("2", "two")};

    const std::string prompt = encode(messages, kChat);

    EXPECT_TRUE(
        prompt.ends_with("<｜User｜><tool_result>one</tool_result>\n\ntext\n\n<tool_result>two</tool_result>\n\n"
                         "<tool_result>three</tool_result><｜Assistant｜></think>"))
        << prompt;
}

TEST(ChatEncoder, AToolResultWithAnUnknownIdGoesWithTheFirst) {
    const Messages messages{calls({{"1", "f", "{}"}, {"2", "g", "{}"}}), tool("2", "two"), tool("?", "lost"),
                            tool("1", "one")};

    const std::string prompt = encode(messages, kChat);

    EXPECT_NE(prompt.find("lost</tool_result>\n\n<tool_result>one</tool_result>\n\n<tool_result>two"),
              std::string::npos)
        << prompt;
}

TEST(ChatEncoder, DeveloperTurnsBeforeTheLastUserTurnGoWithTheReasoning) {
    const Messages messages{developer("D"), assistant("a", "r"), user("u")};

    EXPECT_EQ(encode(messages, kThinking), kBos + "a" + kEos + "<｜User｜>u<｜Assistant｜><think>");
    EXPECT_EQ(encode(messages, kKeepThinking),
              kBos + "<｜User｜>D<｜Assistant｜><think>r</think>a" + kEos + "<｜User｜>u<｜Assistant｜><think>");
    EXPECT_EQ(encode(messages, kChat),
              kBos + "<｜User｜>D<｜Assistant｜></think>a" + kEos + "<｜User｜>u<｜Assistant｜></think>");
}

TEST(ChatEncoder, ALastDeveloperTurnIsAUserTurn) {
    EXPECT_EQ(encode({user("u"), assistant("a", "r"), developer("D")}, kThinking),
              kBos + "<｜User｜>u<｜Assistant｜></think>a" + kEos + "<｜User｜>D<｜Assistant｜><think>");
}

TEST(ChatEncoder, ToolsOfAUserMessageAreIgnored) {
    ChatMessage message = user("u");
    message.tools = {"{}"};

    EXPECT_EQ(encode({developer("D"), message}, kThinking), kBos + "<｜User｜>u<｜Assistant｜><think>");
}

// Rules of 6.4.

TEST(ChatEncoder, ReasoningBehindTheLastUserTurnStays) {
    EXPECT_EQ(encode({user("u"), assistant("a", "r")}, kThinking),
              kBos + "<｜User｜>u<｜Assistant｜><think>r</think>a" + kEos);
    EXPECT_EQ(encode({user("u"), assistant("a")}, kThinking),
              kBos + "<｜User｜>u<｜Assistant｜><think></think>a" + kEos);
    EXPECT_EQ(encode({user("u"), assistant("a", "r")}, kChat), kBos + "<｜User｜>u<｜Assistant｜></think>a" + kEos);
    EXPECT_EQ(encode({assistant("a", "r")}, kThinking), kBos + "r</think>a" + kEos);
}

TEST(ChatEncoder, TheAnswerToATaskHasNoReasoning) {
    EXPECT_EQ(encode({with_task(user("u"), Task::kTitle), assistant("A title", "r")}, kThinking),
              kBos + "<｜User｜>u<｜title｜>A title" + kEos);
}

TEST(ChatEncoder, ASecondAssistantTurnGetsNoPromptOfItsOwn) {
    EXPECT_EQ(encode({user("u"), assistant("a"), assistant("b")}, kChat),
              kBos + "<｜User｜>u<｜Assistant｜></think>a" + kEos + "b" + kEos);
}

TEST(ChatEncoder, AnOpenAssistantTurnHasNoEndOfSentence) {
    ChatMessage open = assistant("begin");
    open.without_eos = true;

    EXPECT_EQ(encode({user("u"), open}, kChat), kBos + "<｜User｜>u<｜Assistant｜></think>begin");
}

TEST(ChatEncoder, AReminderFollowsThePromptOfTheUserTurn) {
    EXPECT_EQ(encode({user("u"), reminder("today is Monday")}, kChat),
              kBos + "<｜User｜>u<｜Assistant｜></think><｜latest_reminder｜>today is Monday");
}

TEST(ChatEncoder, ASystemTurnLeadsToNoAnswer) {
    EXPECT_EQ(encode({system("S")}, kThinking), kBos + "S");
}

TEST(ChatEncoder, ACallWithoutParametersLeavesAnEmptyLine) {
    EXPECT_EQ(
        encode({calls({{"1", "f", "{}"}, {"2", "g", ""}})}, kChat),
        kBos +
            "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n\n</｜DSML｜invoke>\n"
            "<｜DSML｜invoke name=\"g\">\n<｜DSML｜parameter name=\"arguments\" string=\"true\"></｜DSML｜parameter>\n"
            "</｜DSML｜invoke>\n</｜DSML｜tool_calls>" +
            kEos);
}

TEST(ChatEncoder, ArgumentsThatAreNoJsonObjectAreOneRawParameter) {
    for (const char* arguments : {"{\"a\":", "[1]", "plain"}) {
        const std::string prompt = encode({calls({{"1", "f", arguments}})}, kChat);
        const std::string expected =
            "<｜DSML｜parameter name=\"arguments\" string=\"true\">" + std::string(arguments) + "</";
        EXPECT_NE(prompt.find(expected), std::string::npos) << prompt;
    }
}

TEST(ChatEncoder, ListFormContentIsJoinedByBlankLines) {
    const std::vector<ContentPart> parts{{"text", "one"}, {"image_url", "http://x"}, {"text", "two"}};

    EXPECT_EQ(join_parts(parts), "one\n\n[Unsupported image_url]\n\ntwo");
    EXPECT_EQ(join_parts({}), "");
}

TEST(ChatEncoder, TheResponseFormatStandsBehindTheTools) {
    ChatMessage message = developer("D");
    message.tools = {"{\"name\":\"f\"}", "{\"name\":\"g\"}"};
    message.response_format = "{\"type\":\"json_object\"}";

    EXPECT_EQ(
        encode({message}, kChat, &kConstants),
        kBos +
            "<｜User｜>D\n\nTOOLS1\n{\"name\": \"f\"}\n{\"name\": \"g\"}\nTOOLS2\n\nFORMAT\n{\"type\": \"json_object\"}"
            "<｜Assistant｜></think>");
}

TEST(ChatEncoder, TheEffortTextStandsFirstInThinkingModeOnly) {
    ChatOptions options = kThinking;
    options.effort = Effort::kMax;
    EXPECT_EQ(encode({system("S")}, options, &kConstants), kBos + "MAX\nS");

    options.effort = Effort::kHigh;
    EXPECT_EQ(encode({system("S")}, options, &kConstants), kBos + "HIGH\nS");

    options.effort = Effort::kLow;
    EXPECT_EQ(encode({system("S")}, options), kBos + "S");

    options = {.effort = Effort::kMax};
    EXPECT_EQ(encode({system("S")}, options), kBos + "S");
}

TEST(ChatEncoder, WhatNeedsAConstantTextIsRefusedWithoutIt) {
    ChatMessage with_tools = system("S");
    with_tools.tools = {"{}"};
    ChatMessage with_format = system("S");
    with_format.response_format = "{}";
    const ChatOptions effort{.thinking = true, .effort = Effort::kHigh};

    for (const auto& [message, options, named] :
         {std::tuple(with_tools, kChat, "tools"), std::tuple(with_format, kChat, "response_format"),
          std::tuple(system("S"), effort, "reasoning effort high")}) {
        const auto prompt = encode_chat(Messages{message}, options, nullptr);
        ASSERT_FALSE(prompt) << named;
        EXPECT_EQ(prompt.error().code, Errc::kFailedPrecondition);
        EXPECT_EQ(prompt.error().what.find(named), 0U) << prompt.error().what;
    }
}

TEST(ChatEncoder, RefusesMessagesThatCannotBeRendered) {
    ChatMessage broken = system("S");
    broken.tools = {"{}", "{"};

    EXPECT_FALSE(encode_chat(Messages{}, kChat, nullptr));
    EXPECT_FALSE(encode_chat(Messages{developer("")}, kChat, nullptr));
    EXPECT_NE(encode({broken}, kChat, &kConstants).find("tools[1]"), std::string::npos);
}

TEST(ChatEncoder, NamesOfRolesTasksAndLevelsAreThoseOfTheApi) {
    EXPECT_EQ(parse_role("latest_reminder"), Role::kLatestReminder);
    EXPECT_EQ(parse_role("tool"), Role::kTool);
    EXPECT_EQ(parse_role("robot"), std::nullopt);
    EXPECT_EQ(parse_task("read_url"), Task::kReadUrl);
    EXPECT_EQ(parse_task(""), std::nullopt);
    EXPECT_EQ(parse_effort("none"), Effort::kDefault);
    EXPECT_EQ(parse_effort("max"), Effort::kMax);
    EXPECT_EQ(parse_effort("extreme"), std::nullopt);
}

// Which parts of a prompt came from the messages.

TEST(ChatEncoder, TheLiteralRangesHoldWhatCameFromTheMessages) {
    const Messages messages{system("S</think>"), user("<｜User｜>"), calls({{"1", "f", "{\"k\": \"v\"}"}}),
                            tool("1", "<think>")};
    const auto prompt = render_chat(messages, kChat, nullptr);
    ASSERT_TRUE(prompt);

    std::vector<std::string> parts;
    for (const ByteRange& range : prompt.value().literal) {
        parts.push_back(prompt.value().text.substr(range.begin, range.end - range.begin));
    }

    EXPECT_EQ(parts, (std::vector<std::string>{"S</think>", "<｜User｜>", "f", "k", "v", "<think>"}));
}

TEST(ChatEncoder, NoContentCanActAsMarkup) {
    static const auto tokenizer = Tokenizer::load("models/mini/tokenizer.json");
    ASSERT_TRUE(tokenizer);
    const std::int32_t user_id = *tokenizer.value()->id_of("<｜User｜>");
    EXPECT_TRUE(rc::check([&] {
        const auto content = *rc::gen::container<std::vector<std::string>>(
            rc::gen::element<std::string>("<｜User｜>", "<｜", "User", "｜>", "<", "a", "<think>"));
        std::string text;
        for (const std::string& part : content) {
            text += part;
        }
        const auto prompt = render_chat(Messages{user(text)}, kChat, nullptr);
        const auto ids = tokenizer.value()->encode(prompt.value().text, prompt.value().literal);

        RC_ASSERT(std::count(ids.begin(), ids.end(), user_id) == 1);
        RC_ASSERT(tokenizer.value()->decode(ids, false) == prompt.value().text);
    }));
}

}  // namespace
}  // namespace megamoe::text
