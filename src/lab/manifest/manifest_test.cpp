#include "lab/manifest/manifest.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "lab/core/files.h"
#include "lab/core/gzip.h"
#include "lab/manifest/generate.h"
#include "lab/manifest/manifest_file.h"
#include "lab/manifest/row_hash.h"
#include "lab/manifest/test_tokens.h"
#include "lab/manifest/token_pool.h"

namespace megamoe::lab {
namespace {

namespace fs = std::filesystem;

class ManifestTest : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("mm_manifest_" + std::to_string(::getpid()));
        fs::remove_all(folder_);
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }

    static GenerateOptions small() {
        GenerateOptions options;
        options.num_prompts = 6;
        options.warmup_requests = 2;
        options.input_len = 40;
        options.output_len = 8;
        return options;
    }
    static Manifest make(const GenerateOptions& options, bool bos = false) {
        auto made = generate_manifest(options, PairTokens(bos));
        EXPECT_TRUE(made) << to_string(made.error());
        return std::move(made).take();
    }

    fs::path folder_;
};

TEST_F(ManifestTest, OneSeedGivesOneContentHashForGood) {
    // A change here means that old seeds no longer reproduce old manifests.
    Manifest manifest = make(small());
    ASSERT_TRUE(write_manifest(manifest, path("m.jsonl.gz")));

    EXPECT_EQ(manifest.content_sha256, "5bf419dad76f49b787a8d560b811b86c2a9192a8454d5953c46975ad03bef95a");
    EXPECT_EQ(manifest.prompts_sha256, "f476e1d42b8886197f5998182ecaace61696411867716b100f060a8834c21835");
}

TEST_F(ManifestTest, EveryTextPromptHasExactlyTheAskedTokens) {
    const PairTokens tokens;
    const Manifest manifest = make(small());

    for (const Row& row : manifest.rows) {
        EXPECT_EQ(tokens.encode(row.text).size(), row.in) << row.id;
        EXPECT_EQ(tokens.encode(row.text), row.ids) << row.id;
    }
}

TEST_F(ManifestTest, CountedBosTakesTheRoomOfOneToken) {
    const Manifest manifest = make(small(), /*bos=*/true);

    EXPECT_EQ(manifest.origin.bos_policy, "counted");
    EXPECT_EQ(manifest.rows.back().in, 40U);
    EXPECT_EQ(manifest.rows.back().ids.size(), 39U);
}

TEST_F(ManifestTest, RowsDoNotChangeWhenTheirNumberGrows) {
    GenerateOptions more = small();
    more.num_prompts = 11;
    more.warmup_requests = 5;

    const Manifest few_rows = make(small());
    const Manifest many_rows = make(more);

    for (const Role role : {Role::kCanary, Role::kWarmup, Role::kMeasure}) {
        const auto few = rows_of(few_rows, role);
        const auto many = rows_of(many_rows, role);
        for (std::size_t i = 0; i < few.size(); ++i) {
            EXPECT_EQ(*few[i], *many[i]);
        }
    }
}

TEST_F(ManifestTest, WarmUpPromptsAreNeverMeasuredPrompts) {
    const Manifest manifest = make(small());

    std::set<std::string> texts;
    for (const Row& row : manifest.rows) {
        EXPECT_TRUE(texts.insert(row.text).second) << row.id;
    }
}

TEST_F(ManifestTest, CommonPrefixStandsBeforeEveryPrompt) {
    GenerateOptions options = small();
    options.prefix_len = 16;
    const Manifest manifest = make(options);

    const auto rows = rows_of(manifest, Role::kMeasure);
    const std::string& first = rows.front()->text;
    for (const Row* row : rows) {
        EXPECT_EQ(row->in, 56U);
        EXPECT_EQ(row->text.substr(0, 16), first.substr(0, 16));
    }
}

TEST_F(ManifestTest, RandomLengthsStayInTheirRange) {
    EXPECT_TRUE(rc::check([] {
        const auto length = *rc::gen::inRange<std::uint32_t>(1, 100000);
        const double ratio = *rc::gen::inRange(0, 1000) / 1000.0;
        const LengthRange lower = length_range(length, ratio, RangeMode::kLower);
        const LengthRange sym = length_range(length, ratio, RangeMode::kSymmetric);

        RC_ASSERT(lower.low >= 1U && lower.low <= lower.high && lower.high == length);
        RC_ASSERT(sym.low >= 1U && sym.low <= length && sym.high >= length && sym.high <= 2 * length);
    }));
}

TEST_F(ManifestTest, RatioZeroMeansOppositeThingsInTheTwoModes) {
    EXPECT_EQ(length_range(1024, 0, RangeMode::kLower), (LengthRange{1, 1024}));
    EXPECT_EQ(length_range(1024, 0, RangeMode::kSymmetric), (LengthRange{1024, 1024}));
}

TEST_F(ManifestTest, WrittenManifestReadsBackEqual) {
    GenerateOptions options = small();
    options.sampling.temperature = 0.7;
    Manifest manifest = make(options);
    manifest.rows.back().sess = "s1";
    manifest.rows.back().turn = 3;
    manifest.rows.back().gap_us = 5;
    manifest.rows.back().at_us = 12;
    ASSERT_TRUE(write_manifest(manifest, path("m.jsonl.gz")));

    const auto read = read_manifest(path("m.jsonl.gz"));

    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(read.value().rows, manifest.rows);
    EXPECT_EQ(read.value().content_sha256, manifest.content_sha256);
    EXPECT_EQ(read.value().sampling, manifest.sampling);
    EXPECT_NE(read.value().rows.back().params, "{}");
}

TEST_F(ManifestTest, SameContentGivesTheSameBytes) {
    Manifest manifest = make(small());
    ASSERT_TRUE(write_manifest(manifest, path("a.jsonl.gz")));
    ASSERT_TRUE(write_manifest(manifest, path("b.jsonl.gz")));

    const auto a = read_file(path("a.jsonl.gz"));
    const auto b = read_file(path("b.jsonl.gz"));

    ASSERT_TRUE(a && b);
    EXPECT_EQ(a.value(), b.value());
    EXPECT_EQ(static_cast<unsigned char>(a.value()[9]), 255);  // OS byte
    EXPECT_EQ(a.value().substr(4, 4), std::string(4, '\0'));   // modification time
}

TEST_F(ManifestTest, AnotherGzipWriterKeepsTheContentHash) {
    Manifest manifest = make(small());
    ASSERT_TRUE(write_manifest(manifest, path("a.jsonl.gz")));
    auto lines = LineReader::open(path("a.jsonl.gz"));
    ASSERT_TRUE(lines);
    gzFile other = gzopen(path("b.jsonl.gz").c_str(), "wb9");
    for (;;) {
        const auto line = lines.value().next();
        ASSERT_TRUE(line);
        if (!line.value()) {
            break;
        }
        gzputs(other, (*line.value() + "\n").c_str());
    }
    gzclose(other);

    const auto read = read_manifest(path("b.jsonl.gz"));

    ASSERT_TRUE(read) << to_string(read.error());
    EXPECT_EQ(read.value().content_sha256, manifest.content_sha256);
}

TEST_F(ManifestTest, EveryFlippedByteOfTheFileIsNoticedOrHarmless) {
    Manifest manifest = make(small());
    ASSERT_TRUE(write_manifest(manifest, path("m.jsonl.gz")));
    const std::string good = read_file(path("m.jsonl.gz")).value();

    for (std::size_t at = 0; at < good.size(); at += 7) {
        std::string bad = good;
        bad[at] = static_cast<char>(bad[at] ^ 0x10);
        std::ofstream(path("bad.jsonl.gz"), std::ios::binary) << bad;

        const auto read = read_manifest(path("bad.jsonl.gz"));

        // A flip in a field of the gzip header that carries no content may pass; the rows must then be the right ones.
        if (read) {
            EXPECT_LT(at, 10U);
            EXPECT_EQ(read.value().rows, manifest.rows);
        } else {
            EXPECT_EQ(read.error().code, Errc::kFailedPrecondition) << at;
        }
    }
}

TEST_F(ManifestTest, AnEditedRowIsNamed) {
    Manifest manifest = make(small());
    ASSERT_TRUE(write_manifest(manifest, path("m.jsonl.gz")));
    auto lines = LineReader::open(path("m.jsonl.gz"));
    ASSERT_TRUE(lines);
    std::string text;
    while (const auto line = lines.value().next().value()) {
        text += *line + "\n";
    }
    const std::size_t row = text.find("\"id\":\"m-000003\"");
    const std::size_t out = text.find("\"out\":8", row);
    text.replace(out, 7, "\"out\":9");
    std::ofstream(path("edited.jsonl")) << text;

    const auto read = read_manifest(path("edited.jsonl"));

    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Errc::kFailedPrecondition);
    EXPECT_NE(read.error().what.find("m-000003"), std::string::npos);
}

TEST_F(ManifestTest, MissingRowBreaksTheContentHash) {
    Manifest manifest = make(small());
    const std::string all = content_sha256(manifest.rows);
    manifest.rows.pop_back();

    EXPECT_NE(content_sha256(manifest.rows), all);
}

TEST_F(ManifestTest, PromptsHashIgnoresBookkeeping) {
    Manifest manifest = make(small());
    const std::string prompts = prompts_sha256(manifest.rows);
    const std::string content = content_sha256(manifest.rows);
    for (Row& row : manifest.rows) {
        row.at_us += 1;
    }

    EXPECT_EQ(prompts_sha256(manifest.rows), prompts);
    EXPECT_NE(content_sha256(manifest.rows), content);
}

TEST_F(ManifestTest, FieldsCannotShiftIntoEachOther) {
    Row a;
    a.id = "ab";
    a.text = "c";
    Row b;
    b.id = "a";
    b.text = "bc";

    EXPECT_NE(row_digest(a), row_digest(b));
}

TEST_F(ManifestTest, OnlyFlagsThatWereWrittenAreCompared) {
    const std::string args = to_json(small());
    GenerateOptions asked = small();
    asked.input_len = 99;
    asked.seed = 1;
    const std::vector<std::string> given{"input-len", "num-prompts", "max-concurrency"};

    const auto differences = differing_args(asked, given, args);

    ASSERT_EQ(differences.size(), 1U);
    EXPECT_EQ(differences[0].flag, "input-len");
    EXPECT_EQ(differences[0].in_manifest, "40");
    EXPECT_EQ(differences[0].asked, "99");
}

TEST_F(ManifestTest, TextDatasetCutsStretchesOfTheFile) {
    std::ofstream(path("text.txt"))
        << "the quick brown fox jumps over the lazy dog and runs into the old forest where it "
           "meets another fox that jumps over nothing at all";
    GenerateOptions options = small();
    options.dataset = "random-text";
    options.dataset_path = path("text.txt");

    const Manifest manifest = make(options);

    const PairTokens tokens;
    for (const Row& row : manifest.rows) {
        EXPECT_EQ(tokens.encode(row.text).size(), row.in);
    }
}

TEST_F(ManifestTest, ShareGptTakesLengthsFromTheAnswers) {
    std::ofstream(path("s.json")) << R"([{"conversations":[{"value":"hello there friend"},{"value":"good day to you"}]},
        {"conversations":[{"value":"x"},{"value":"y"}]},
        {"conversations":[{"value":"another question here"},{"value":"another answer here"}]},
        {"conversations":[{"value":"the third question"},{"value":"the third answer"}]}])";
    GenerateOptions options;
    options.dataset = "sharegpt";
    options.dataset_path = path("s.json");
    options.num_prompts = 2;

    const Manifest manifest = make(options);

    const auto rows = rows_of(manifest, Role::kMeasure);
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_EQ(rows[0]->text, "hello there friend");
    EXPECT_EQ(rows[0]->out, PairTokens().encode("good day to you").size());
    EXPECT_EQ(rows[1]->text, "another question here");  // the short pair was dropped
}

TEST_F(ManifestTest, TooFewRecordsAreSaidWithNumbers) {
    std::ofstream(path("c.jsonl")) << R"({"prompt":"hello there","output_len":5})"
                                   << "\n";
    GenerateOptions options;
    options.dataset = "custom";
    options.dataset_path = path("c.jsonl");
    options.num_prompts = 3;

    const auto made = generate_manifest(options, PairTokens());

    ASSERT_FALSE(made);
    EXPECT_NE(made.error().what.find("has 1 usable records, 4 are needed"), std::string::npos) << made.error().what;
}

TEST(CleanUtf8, AcceptsTextAndRefusesBrokenBytes) {
    EXPECT_TRUE(is_clean_utf8("plain"));
    EXPECT_TRUE(is_clean_utf8("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"));
    EXPECT_FALSE(is_clean_utf8("\xC3"));
    EXPECT_FALSE(is_clean_utf8("\xC0\x80"));
    EXPECT_FALSE(is_clean_utf8("\xED\xA0\x80"));
    EXPECT_FALSE(is_clean_utf8("\xEF\xBF\xBD"));
}

}  // namespace
}  // namespace megamoe::lab
