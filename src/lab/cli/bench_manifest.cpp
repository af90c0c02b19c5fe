#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "lab/cli.h"
#include "lab/cli/flags.h"
#include "lab/cli/generate_flags.h"
#include "lab/manifest/generate.h"
#include "lab/manifest/manifest_file.h"
#include "lab/manifest/row_hash.h"

namespace megamoe::lab {
namespace {

constexpr const char* kUsage =
    "usage: megamoe bench manifest make --model FOLDER --out FILE [data flags]   make a manifest\n"
    "       megamoe bench manifest verify FILE                                   recompute every hash\n"
    "       megamoe bench manifest show FILE                                     what is in it\n"
    "       megamoe bench manifest diff FILE FILE                                what differs\n";

int complain(Exit exit, const Error& error) {
    fmt::print(stderr, "error: {}\n", to_string(error));
    return code(exit);
}

void print_summary(const Manifest& manifest, const std::string& path) {
    const RowCounts counts = count_rows(manifest);
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    for (const Row* row : rows_of(manifest, Role::kMeasure)) {
        in += row->in;
        out += row->out;
    }
    fmt::print("{}\n", path);
    fmt::print("rows      {} measured, {} warm-up, {} canary\n", counts.measure, counts.warmup, counts.canary);
    fmt::print("tokens    {} in, {} out (measured rows)\n", in, out);
    fmt::print("prompts   {} {}, seed {}\n", manifest.origin.generator, to_string(manifest.format),
               manifest.origin.seed);
    fmt::print("tokenizer {} (vocabulary {}, BOS {})\n", manifest.origin.tokenizer, manifest.origin.vocab,
               manifest.origin.bos_policy);
    fmt::print("content   {}\n", manifest.content_sha256);
    fmt::print("prompts   {}\n", manifest.prompts_sha256);
    if (manifest.origin.generator == "random") {
        fmt::print(
            "note: random tokens give unnatural routing. Judge expert balance and EPLB with natural text as well "
            "(--dataset-name random-text).\n");
    }
}

int make(const std::vector<std::string>& args, const TokenSourceFactory& load_tokens) {
    GenerateOptions options;
    std::string model;
    std::string out;
    CLI::App app("Make a prompt manifest.", "megamoe bench manifest make");
    app.option_defaults()->always_capture_default();
    app.add_option("--model,--model-path,--tokenizer", model, "model folder whose tokenizer makes the prompts");
    app.add_option("--out,--prompt-manifest", out, "file to make, name.jsonl.gz");
    GenerateFlags flags(app, options);
    if (std::find(args.begin(), args.end(), "--help") != args.end()) {
        fmt::print("{}", app.help());
        return code(Exit::kGood);
    }
    if (const auto parsed = parse_flags(app, args, GenerateFlags::unsupported()); !parsed) {
        return complain(Exit::kUsage, parsed.error());
    }
    if (const auto finished = flags.finish(given_flags(app)); !finished) {
        return complain(Exit::kUsage, finished.error());
    }
    if (out.empty() || model.empty()) {
        return complain(Exit::kUsage, invalid("--model and --out are needed"));
    }
    if (std::filesystem::exists(out)) {
        return complain(Exit::kManifest, invalid(out + " exists already", "manifests are never overwritten"));
    }
    auto tokens = load_tokens(model);
    if (!tokens) {
        return complain(Exit::kUsage, tokens.error());
    }
    auto made = generate_manifest(options, *tokens.value());
    if (!made) {
        return complain(Exit::kUsage, made.error());
    }
    Manifest manifest = std::move(made).take();
    if (const auto written = write_manifest(manifest, out); !written) {
        return complain(Exit::kInternal, written.error());
    }
    print_summary(manifest, out);
    return code(Exit::kGood);
}

int failed_read(const Error& error) {
    return complain(error.code == Errc::kNotFound ? Exit::kUsage : Exit::kManifest, error);
}

int verify(const std::string& path, bool show) {
    const auto manifest = read_manifest(path);
    if (!manifest) {
        return failed_read(manifest.error());
    }
    if (show) {
        print_summary(manifest.value(), path);
        fmt::print("made with {}\n", manifest.value().origin.args_json);
    } else {
        fmt::print("ok {} {}\n", manifest.value().content_sha256, path);
    }
    return code(Exit::kGood);
}

void print_arg_differences(const Manifest& a, const Manifest& b) {
    const auto left = nlohmann::json::parse(a.origin.args_json);
    const auto right = nlohmann::json::parse(b.origin.args_json);
    for (const auto& [key, value] : left.items()) {
        if (!right.contains(key) || right[key] != value) {
            fmt::print("  --{}: {} | {}\n", key, value.dump(), right.contains(key) ? right[key].dump() : "-");
        }
    }
}

int diff(const std::string& path_a, const std::string& path_b) {
    const auto a = read_manifest(path_a);
    const auto b = read_manifest(path_b);
    if (!a || !b) {
        return failed_read(a ? b.error() : a.error());
    }
    if (a.value().content_sha256 == b.value().content_sha256) {
        fmt::print("equal: content {}\n", a.value().content_sha256);
        return code(Exit::kGood);
    }
    if (a.value().prompts_sha256 == b.value().prompts_sha256) {
        fmt::print("the measured prompts are equal, the rest is not\n");
    }
    print_arg_differences(a.value(), b.value());
    std::map<std::string, Digest> rows_of_a;
    for (const Row& row : a.value().rows) {
        rows_of_a.emplace(row.id, row_digest(row));
    }
    std::int64_t changed = 0;
    std::int64_t only_b = 0;
    for (const Row& row : b.value().rows) {
        const auto found = rows_of_a.find(row.id);
        if (found == rows_of_a.end()) {
            ++only_b;
        } else {
            changed += found->second != row_digest(row) ? 1 : 0;
            rows_of_a.erase(found);
        }
    }
    fmt::print("rows: {} differ, {} only in {}, {} only in {}\n", changed, rows_of_a.size(), path_a, only_b, path_b);
    return code(Exit::kRefused);
}

}  // namespace

int run_bench_manifest(const std::vector<std::string>& args, const TokenSourceFactory& load_tokens) {
    const std::string command = args.empty() ? "" : args.front();
    const std::vector<std::string> rest(args.begin() + (args.empty() ? 0 : 1), args.end());
    if (command == "make" || command == "create") {
        return make(rest, load_tokens);
    }
    if ((command == "verify" || command == "show") && rest.size() == 1) {
        return verify(rest.front(), command == "show");
    }
    if (command == "diff" && rest.size() == 2) {
        return diff(rest[0], rest[1]);
    }
    const bool help = command == "--help";
    fmt::print(help ? stdout : stderr, "{}", kUsage);
    return code(help ? Exit::kGood : Exit::kUsage);
}

}  // namespace megamoe::lab
