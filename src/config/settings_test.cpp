#include "config/settings.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/serve_flags.h"

namespace megamoe {
namespace {

struct Read {
    ServeOptions options;
    std::vector<Finding> findings;
};

Read read(const std::vector<std::string>& args, const std::string& toml = "") {
    Read read;
    for (const Settings& settings : {parse_toml(toml), parse_flags(args)}) {
        read.findings.insert(read.findings.end(), settings.findings.begin(), settings.findings.end());
        apply_settings(settings.values, read.options, read.findings);
    }
    return read;
}

std::string only_finding(const Read& read) {
    EXPECT_EQ(read.findings.size(), 1U);
    return read.findings.empty() ? "" : to_string(read.findings.front());
}

TEST(Settings, AFlagTakesItsValueBehindABlankOrAnEqualsSign) {
    EXPECT_EQ(read({"--port", "81"}).options.port, 81);
    EXPECT_EQ(read({"--port=82"}).options.port, 82);
}

TEST(Settings, AnAliasIsTheSameFlag) {
    const Read short_form = read({"--tp", "4", "--model", "m"});

    EXPECT_TRUE(short_form.findings.empty());
    EXPECT_EQ(short_form.options.tp_size, 4);
    EXPECT_EQ(short_form.options.model_path, "m");
}

TEST(Settings, AFlagWinsOverTheFileAndTheFileOverTheDefault) {
    const Read both = read({"--port", "3"}, "port = 2\nmax_running_requests = 7\n");

    EXPECT_EQ(both.options.port, 3);
    EXPECT_EQ(both.options.origins.at("port"), Origin::kFlag);
    EXPECT_EQ(both.options.engine.max_running_requests, 7);
    EXPECT_EQ(both.options.origins.at("max-running-requests"), Origin::kFile);
    EXPECT_EQ(both.options.host, "127.0.0.1");
}

TEST(Settings, TheLaterOfTwoEqualFlagsWins) {
    EXPECT_EQ(read({"--port", "1", "--port", "2"}).options.port, 2);
}

TEST(Settings, TheFileTakesDashesAndUnderscores) {
    EXPECT_EQ(read({}, "tp-size = 2").options.tp_size, 2);
    EXPECT_EQ(read({}, "tp_size = 2").options.tp_size, 2);
}

TEST(Settings, AnUnknownFlagIsRefusedWithTheNearestKnownOne) {
    EXPECT_EQ(only_finding(read({"--chunked-prefil-size", "64"})),
              "CFG-38 refused: --chunked-prefil-size: no such flag; did you mean --chunked-prefill-size?");
}

TEST(Settings, AnUnknownKeyIsRefusedWithTheNearestKnownOne) {
    EXPECT_EQ(only_finding(read({}, "max_runing_requests = 4")),
              "CFG-38 refused: max_runing_requests: no such key; did you mean max_running_requests?");
}

TEST(Settings, AllProblemsAreReportedAtOnce) {
    const Read bad =
        read({"--port", "70000", "--nonsense-option", "--mem-fraction-static", "much", "stray"}, "tp_size = 0");

    EXPECT_EQ(bad.findings.size(), 5U);
}

TEST(Settings, AValueOutOfBoundsNamesTheBoundsAndLeavesTheOptionAlone) {
    const Read bad = read({"--port", "70000"});

    EXPECT_EQ(only_finding(bad), "CFG-43 refused: --port 70000: not a whole number from 0 to 65535");
    EXPECT_EQ(bad.options.port, ServeOptions().port);
}

TEST(Settings, ANumberWithTextBehindItIsNoNumber) {
    EXPECT_EQ(read({"--port", "80x"}).findings.size(), 1U);
}

TEST(Settings, AMissingValueIsNotTakenFromTheNextFlag) {
    const Read bad = read({"--host", "--port", "81"});

    EXPECT_EQ(only_finding(bad), "CFG-43 refused: --host: its value is missing");
    EXPECT_EQ(bad.options.port, 81);
}

TEST(Settings, AFileThatIsNotTomlIsRefusedWithThePlace) {
    EXPECT_NE(only_finding(read({}, "port = \nhost = 1")).find("line 1"), std::string::npos);
}

TEST(Settings, ATableInTheFileIsRefused) {
    EXPECT_NE(only_finding(read({}, "[serve]\nport = 1")).find("keys stand at the top"), std::string::npos);
}

TEST(Settings, DryRunBelongsOnTheCommandLine) {
    EXPECT_EQ(read({}, "dry_run = true").findings.size(), 1U);
}

TEST(ForeignFlags, AnEqualEffectIsNotedAndNothingElseChanges) {
    const Read noted = read({"--disable-radix-cache", "--attention-backend", "dsv4", "--cuda-graph-max-bs", "1024"});

    ASSERT_EQ(noted.findings.size(), 3U);
    EXPECT_FALSE(refuses(noted.findings));
    EXPECT_TRUE(noted.options.origins.empty());
}

TEST(ForeignFlags, AnotherValueIsRefusedWithTheAcceptedOne) {
    EXPECT_EQ(
        only_finding(read({"--attention-backend", "flashinfer"})),
        "CFG-44 refused: --attention-backend flashinfer: there is one attention, the DeepSeek-V4 one; use dsv4 or "
        "leave it out");
}

TEST(ForeignFlags, AWordWithAnotherMeaningIsRefusedWithOurs) {
    EXPECT_NE(only_finding(read({"--max-num-seqs=512"})).find("--max-running-requests"), std::string::npos);
}

TEST(ForeignFlags, FusedSharedExpertsAreRefusedById) {
    EXPECT_EQ(only_finding(read({"--enforce-shared-experts-fusion"})).substr(0, 6), "CFG-02");
}

TEST(ForeignFlags, ABackendThatCannotBeHadIsRefusedWithTheReasonAndThoseThatCan) {
    EXPECT_EQ(
        only_finding(read({"--moe-a2a-backend", "none"})),
        "CFG-43 refused: --moe-a2a-backend none: the experts lie on different ranks, so their rows must be exchanged; "
        "use one of: standard, megamoe, reference");
}

TEST(ForeignFlags, AnFp8CacheIsRefusedByName) {
    EXPECT_NE(only_finding(read({"--kv-cache-dtype", "fp8_e4m3"})).find("the caches hold bfloat16"), std::string::npos);
}

TEST(ForeignFlags, AValueThatNobodyKnowsIsRefusedWithTheKnownOnes) {
    EXPECT_EQ(only_finding(read({"--profile", "fast"})),
              "CFG-43 refused: --profile fast: no such value; use one of: hf, ds");
}

TEST(ForeignFlags, NoNameStandsInBothTables) {
    for (const ForeignFlag& foreign : foreign_flags()) {
        EXPECT_EQ(find_flag(foreign.name), nullptr) << foreign.name;
    }
}

// The launch line of the public reproduction, without its program name and variables, and without the FP8 cache that
// this version does not have.
TEST(Settings, TheReferenceLaunchLineIsAccepted) {
    const Read line = read({"--model-path",
                            "/path/to/DeepSeek-V4-Pro",
                            "--host",
                            "0.0.0.0",
                            "--port",
                            "30000",
                            "--trust-remote-code",
                            "--tp",
                            "8",
                            "--ep-size",
                            "8",
                            "--dp-size",
                            "8",
                            "--enable-dp-attention",
                            "--moe-a2a-backend",
                            "megamoe",
                            "--moe-dense-tp-size",
                            "1",
                            "--enable-dp-lm-head",
                            "--load-balance-method",
                            "round_robin",
                            "--attention-backend",
                            "dsv4",
                            "--kv-cache-dtype",
                            "auto",
                            "--page-size",
                            "256",
                            "--swa-full-tokens-ratio",
                            "0.15",
                            "--mem-fraction-static",
                            "0.85",
                            "--chunked-prefill-size",
                            "65536",
                            "--cuda-graph-max-bs",
                            "1024",
                            "--max-running-requests",
                            "1024",
                            "--disable-radix-cache",
                            "--disable-shared-experts-fusion",
                            "--tool-call-parser",
                            "deepseekv4",
                            "--reasoning-parser",
                            "deepseek-v4"});

    EXPECT_FALSE(refuses(line.findings));
    EXPECT_EQ(line.options.engine.chunked_prefill_size, 65536);
    EXPECT_EQ(line.options.load_balance_method, "round_robin");
    EXPECT_EQ(line.options.moe_a2a_backend, "megamoe");
    EXPECT_DOUBLE_EQ(line.options.engine.mem_fraction, 0.85);
}

TEST(Settings, PrintedOptionsReadBackAsTheSameOptions) {
    EXPECT_TRUE(rc::check([] {
        ServeOptions options;
        const auto text = *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
        options.model_path = text;
        options.port = *rc::gen::inRange(0, 65536);
        options.tp_size = *rc::gen::inRange(1, 64);
        options.engine.profile = *rc::gen::element(Profile::kHf, Profile::kDs);
        options.engine.mem_fraction = *rc::gen::inRange(1, 101) / 100.0;
        options.enable_dp_attention = *rc::gen::arbitrary<bool>();

        const Read again = read({}, print_options(options));

        RC_ASSERT(again.findings.empty());
        RC_ASSERT(again.options.model_path == text);
        RC_ASSERT(again.options.port == options.port);
        RC_ASSERT(again.options.tp_size == options.tp_size);
        RC_ASSERT(again.options.engine.profile == options.engine.profile);
        RC_ASSERT(again.options.engine.mem_fraction == options.engine.mem_fraction);
        RC_ASSERT(again.options.enable_dp_attention == options.enable_dp_attention);
    }));
}

TEST(Settings, NoArgumentListIsAcceptedAndLost) {
    EXPECT_TRUE(rc::check([](const std::vector<std::string>& args) {
        const Settings settings = parse_flags(args);

        RC_ASSERT(settings.values.size() + settings.findings.size() >= args.size() / 2);
    }));
}

TEST(ServeFlags, TheSecretIsNotPrinted) {
    EXPECT_EQ(print_options(read({"--api-key", "hidden"}).options).find("hidden"), std::string::npos);
}

TEST(ServeFlags, HelpNamesEveryFlag) {
    const std::string help = help_text();
    for (const FlagGroup& group : serve_flags()) {
        for (const Flag& flag : group.flags) {
            EXPECT_NE(help.find("--" + flag.name), std::string::npos) << flag.name;
            EXPECT_FALSE(flag.help.empty()) << flag.name;
        }
    }
}

}  // namespace
}  // namespace megamoe
