#include "weights/checkpoint.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <random>

#include "weights/safetensors_header.h"
#include "weights/safetensors_writer.h"
#include "weights/testing_files.h"

namespace megamoe::weights {
namespace {

using testing::read_file;
using testing::safetensors;
using testing::TempDir;
using testing::write_file;

constexpr const char* kTwoTensors =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"I8","shape":[2,2],"data_offsets":[8,12]}})";

std::string error_of(const Result<std::shared_ptr<const Checkpoint>>& checkpoint) {
    return checkpoint ? "opened" : checkpoint.error().what;
}

// The error that a folder gives whose only file is model.safetensors with these parts.
std::string error_of_file(std::string_view header, std::string_view data) {
    const TempDir dir;
    write_file(dir.file("model.safetensors"), safetensors(header, data));
    return error_of(Checkpoint::open(dir.path()));
}

std::string tensor(const char* fields) {
    return std::string(R"({"t":{)") + fields + "}}";
}

// A folder with shard x holding tensor a, shard y holding tensor b, and the given index.
std::string error_of_shards(std::string_view index) {
    const TempDir dir;
    write_file(dir.file("x.safetensors"), safetensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1"));
    write_file(dir.file("y.safetensors"), safetensors(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "2"));
    write_file(dir.file("model.safetensors.index.json"), index);
    return error_of(Checkpoint::open(dir.path()));
}

void expect_contains(const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << "in: " << text << "\nexpected: " << part;
}

TEST(Checkpoint, ReadsBackWhatTheWriterWrote) {
    const TempDir dir;
    EXPECT_TRUE(rc::check([&] {
        const auto num_tensors = *rc::gen::inRange(0, 8);
        std::vector<TensorPlan> plans;
        std::string data;
        for (int i = 0; i < num_tensors; ++i) {
            const auto dtype = *rc::gen::element(Dtype::kF64, Dtype::kF32, Dtype::kBf16, Dtype::kI64, Dtype::kI8,
                                                 Dtype::kF8E4m3, Dtype::kF8E8m0, Dtype::kBool);
            const auto shape = *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 5));
            plans.push_back({"tensor \"" + std::to_string(i), dtype, shape});
            for (std::int64_t n = tensor_bytes(dtype, shape).value(); n > 0; --n) {
                data.push_back(static_cast<char>(data.size() * 31 + 7));
            }
        }
        auto writer = SafetensorsWriter::create(dir.file("f"), plans);
        RC_ASSERT(static_cast<bool>(writer));
        RC_ASSERT(static_cast<bool>(writer.value().append(std::as_bytes(std::span(data)))));
        RC_ASSERT(static_cast<bool>(writer.value().finish()));

        const auto checkpoint = Checkpoint::open_file(dir.file("f"));

        RC_ASSERT(static_cast<bool>(checkpoint));
        RC_ASSERT(checkpoint.value()->tensors().size() == plans.size());
        std::size_t at = 0;
        for (const TensorPlan& plan : plans) {
            const Tensor* found = checkpoint.value()->find(plan.name);
            RC_ASSERT(found != nullptr);
            RC_ASSERT(found->dtype == plan.dtype);
            RC_ASSERT(found->shape == plan.shape);
            const std::string_view bytes(reinterpret_cast<const char*>(found->bytes.data()), found->bytes.size());
            RC_ASSERT(bytes == std::string_view(data).substr(at, bytes.size()));
            at += bytes.size();
        }
        RC_ASSERT(at == data.size());
    }));
}

TEST(Checkpoint, SurvivesAnyMutationOfAFile) {
    const TempDir dir;
    const std::string valid = safetensors(kTwoTensors, std::string(12, 'x'));
    std::mt19937 random(1);
    for (int round = 0; round < 1000; ++round) {
        std::string bytes = valid;
        for (auto changes = 1 + random() % 3; changes > 0; --changes) {
            bytes[random() % bytes.size()] = static_cast<char>(random());
        }
        if (random() % 4 == 0) {
            bytes.resize(random() % bytes.size());
        }
        write_file(dir.file("f"), bytes);

        const auto checkpoint = Checkpoint::open_file(dir.file("f"));

        if (checkpoint) {
            unsigned sum = 0;  // touches every byte that the file promises
            for (const auto& [name, t] : checkpoint.value()->tensors()) {
                for (const std::byte b : t.bytes) {
                    sum += static_cast<unsigned>(b);
                }
            }
            EXPECT_GE(sum, 0U);
        } else {
            expect_contains(checkpoint.error().what, dir.file("f"));
        }
    }
}

TEST(Checkpoint, RefusesEveryTruncation) {
    const TempDir dir;
    const std::string valid = safetensors(kTwoTensors, std::string(12, 'x'));
    for (std::size_t size = 0; size < valid.size(); ++size) {
        write_file(dir.file("f"), valid.substr(0, size));

        EXPECT_FALSE(Checkpoint::open_file(dir.file("f"))) << size;
    }
}

TEST(Checkpoint, ReadsShapesAndBytes) {
    const TempDir dir;
    write_file(dir.file("model.safetensors"), safetensors(kTwoTensors, "abcdefghIJKL"));

    const auto checkpoint = Checkpoint::open(dir.path());

    ASSERT_TRUE(checkpoint) << checkpoint.error().what;
    EXPECT_EQ(checkpoint.value()->tensors().size(), 2U);  // __metadata__ is none
    const Tensor* b = checkpoint.value()->find("b");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->dtype, Dtype::kI8);
    EXPECT_EQ(b->shape, (std::vector<std::int64_t>{2, 2}));
    EXPECT_EQ(b->bytes[0], std::byte{'I'});
    EXPECT_EQ(checkpoint.value()->find("c"), nullptr);
}

TEST(Checkpoint, ReadsPackedFp4WithItsLogicalShape) {
    EXPECT_EQ(error_of_file(tensor(R"("dtype":"F4","shape":[2,6],"data_offsets":[0,6])"), "123456"), "opened");
    expect_contains(error_of_file(tensor(R"("dtype":"F4","shape":[3,3],"data_offsets":[0,4])"), "1234"),
                    "tensor t has 4 bytes, but F4 x [3,3] needs no whole number");
}

TEST(Checkpoint, AllowsGapsAndTrailingBytes) {
    EXPECT_EQ(error_of_file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},)"
                            R"("b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}})",
                            "0123456789"),
              "opened");
}

TEST(Checkpoint, ReportsAMissingFolderAsNotFound) {
    const auto checkpoint = Checkpoint::open("/no/such/folder");

    ASSERT_FALSE(checkpoint);
    EXPECT_EQ(checkpoint.error().code, Errc::kNotFound);
    expect_contains(checkpoint.error().what, "has neither model.safetensors.index.json nor model.safetensors");
}

TEST(Checkpoint, RefusesADirectoryInPlaceOfAFile) {
    expect_contains(error_of(Checkpoint::open_file("/tmp")), "Is a directory");
}

TEST(Checkpoint, RefusesAHeaderLengthBeyondTheFile) {
    const TempDir dir;
    std::string bytes = safetensors(kTwoTensors, std::string(12, 'x'));
    bytes[6] = 1;  // 2^48 bytes
    write_file(dir.file("f"), bytes);

    expect_contains(error_of(Checkpoint::open_file(dir.file("f"))), "the header should have 2814749767");
}

TEST(Checkpoint, RefusesAHeaderThatIsNoJsonObject) {
    for (const char* header : {"", "[]", "{", "null", "{} x", "\xff", R"({"a":)"}) {
        expect_contains(error_of_file(header, ""), "the header is not a JSON object");
    }
}

TEST(Checkpoint, RefusesANameThatStandsTwice) {
    const std::string twice = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                              R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
    expect_contains(error_of_file(twice, "12"), "has the name a twice");
    expect_contains(error_of_file(tensor(R"("dtype":"U8","shape":[1],"shape":[2],"data_offsets":[0,2])"), "12"),
                    "has the name shape twice");
}

TEST(Checkpoint, RefusesMalformedTensorEntries) {
    struct Case {
        const char* fields;
        const char* expected;
    };
    const Case cases[] = {
        {R"("shape":[1],"data_offsets":[0,1])", "tensor t has no dtype"},
        {R"("dtype":5,"shape":[1],"data_offsets":[0,1])", "tensor t has no dtype"},
        {R"("dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3])", "tensor t has the unknown dtype F6_E2M3"},
        {R"("dtype":"U8","data_offsets":[0,1])", "tensor t has no shape"},
        {R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])", "tensor t has no shape"},
        {R"("dtype":"U8","shape":[1.0],"data_offsets":[0,1])", "tensor t has no shape"},
        {R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1])", "tensor t has no shape"},
        {R"("dtype":"U8","shape":[1])", "tensor t has no data_offsets"},
        {R"("dtype":"U8","shape":[1],"data_offsets":[1])", "tensor t has no data_offsets"},
        {R"("dtype":"U8","shape":[1],"data_offsets":[1,0])", "tensor t has no data_offsets"},
        {R"("dtype":"U8","shape":[3],"data_offsets":[0,2])", "tensor t has 2 bytes, but U8 x [3] needs 3"},
        {R"("dtype":"BF16","shape":[2,2],"data_offsets":[0,4])", "tensor t has 4 bytes, but BF16 x [2,2] needs 8"},
        {R"("dtype":"U8","shape":[5],"data_offsets":[0,5])", "tensor t ends at byte 5 of 4: the file is truncated"},
        {R"("dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0])", "needs no whole number of bytes"},
    };
    for (const Case& c : cases) {
        expect_contains(error_of_file(tensor(c.fields), "1234"), c.expected);
    }
    expect_contains(error_of_file(R"({"t":7})", ""), "tensor t is no object");
}

TEST(Checkpoint, RefusesTensorsThatOverlap) {
    expect_contains(error_of_file(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                                  R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                                  "1234"),
                    "tensor b begins at byte 2, inside tensor a that ends at 3");
}

TEST(Checkpoint, ReadsShardsByTheirIndex) {
    EXPECT_EQ(error_of_shards(R"({"metadata":{},"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})"), "opened");
}

TEST(Checkpoint, ReportsAMissingShardAsNotFound) {
    const TempDir dir;
    write_file(dir.file("model.safetensors.index.json"), R"({"weight_map":{"a":"x.safetensors"}})");

    const auto checkpoint = Checkpoint::open(dir.path());

    ASSERT_FALSE(checkpoint);
    EXPECT_EQ(checkpoint.error().code, Errc::kNotFound);
    expect_contains(checkpoint.error().what, "x.safetensors: No such file");
    expect_contains(checkpoint.error().hint, "names this shard");
}

TEST(Checkpoint, RefusesAnIndexThatDisagreesWithItsShards) {
    expect_contains(error_of_shards(R"({"weight_map":{"a":"x.safetensors","b":"y.safetensors","c":"y.safetensors"}})"),
                    "y.safetensors: lacks tensor c");
    expect_contains(error_of_shards(R"({"weight_map":{"b":"y.safetensors","c":"x.safetensors"}})"),
                    "x.safetensors: holds tensor a, which model.safetensors.index.json does not name");
    expect_contains(error_of_shards(R"({"weight_map":{"a":"y.safetensors","b":"x.safetensors"}})"),
                    "holds tensor a, which model.safetensors.index.json places in y.safetensors");
}

TEST(Checkpoint, RefusesATensorThatTwoShardsHold) {
    const TempDir dir;
    const std::string a = safetensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1");
    const std::string ab = safetensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                       R"("b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                       "12");
    write_file(dir.file("x.safetensors"), a);
    write_file(dir.file("y.safetensors"), ab);
    write_file(dir.file("model.safetensors.index.json"), R"({"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})");

    expect_contains(error_of(Checkpoint::open(dir.path())), "y.safetensors: tensor a is also in");
}

TEST(Checkpoint, RefusesAShardOutsideTheFolder) {
    for (const char* file : {"../x.safetensors", "/etc/passwd", "sub/x.safetensors", "..", ".", "", "a\\\\b"}) {
        expect_contains(error_of_shards(R"({"weight_map":{"a":")" + std::string(file) + "\"}}"),
                        "which is no file name of this folder");
    }
}

TEST(Checkpoint, RefusesAMalformedIndex) {
    expect_contains(error_of_shards("{"), "the index is not a JSON object");
    expect_contains(error_of_shards("{}"), "the index has no object weight_map");
    expect_contains(error_of_shards(R"({"weight_map":{"a":1}})"), "tensor a is placed in 1");
    expect_contains(error_of_shards(R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})"),
                    "has the name a twice");
}

TEST(Checkpoint, OpensTheMiniModel) {
    const auto checkpoint = Checkpoint::open("models/mini");

    ASSERT_TRUE(checkpoint) << checkpoint.error().what;
    EXPECT_EQ(checkpoint.value()->files().size(), 2U);
    EXPECT_EQ(checkpoint.value()->tensors().size(), 1373U);
}

}  // namespace
}  // namespace megamoe::weights
