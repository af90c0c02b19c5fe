#include "lab/cli/open_manifest.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lab/manifest/generate.h"
#include "lab/manifest/manifest_file.h"

namespace megamoe::lab {
namespace {

bool given(const BenchServeOptions& options, const char* flag) {
    return std::find(options.given.begin(), options.given.end(), flag) != options.given.end();
}

Result<OpenedManifest> load(const BenchServeOptions& options) {
    MM_TRY(Manifest manifest, read_manifest(options.manifest_path));
    const auto differences = differing_args(options.generate, options.given, manifest.origin.args_json);
    if (!differences.empty()) {
        std::string text = options.manifest_path + " was made with other settings than the command line asks for:";
        for (const ArgDifference& d : differences) {
            text += "\n  --" + d.flag + ": manifest " + d.in_manifest + ", asked " + d.asked;
        }
        return Error{Errc::kFailedPrecondition, text,
                     "leave these flags out to replay the file, or name another file to make one"};
    }
    return OpenedManifest{.manifest = std::move(manifest), .path = options.manifest_path, .created = false};
}

Result<OpenedManifest> make(const BenchServeOptions& options, const TokenSourceFactory& load_tokens) {
    const std::string& model = options.tokenizer.empty() ? options.model : options.tokenizer;
    if (model.empty()) {
        return invalid("no manifest to replay, and no tokenizer to make one",
                       "give --model (or --tokenizer) with a model folder, or an existing --prompt-manifest");
    }
    MM_TRY(const std::unique_ptr<TokenSource> tokens, load_tokens(model));
    MM_TRY(Manifest manifest, generate_manifest(options.generate, *tokens));
    if (!options.manifest_path.empty()) {
        MM_TRY_DONE(write_manifest(manifest, options.manifest_path));
        // What later arms will load is what this one uses.
        MM_TRY(manifest, read_manifest(options.manifest_path));
    }
    return OpenedManifest{.manifest = std::move(manifest), .path = options.manifest_path, .created = true};
}

}  // namespace

Result<OpenedManifest> open_manifest(const BenchServeOptions& options, const TokenSourceFactory& load_tokens) {
    const bool exists = !options.manifest_path.empty() && std::filesystem::exists(options.manifest_path);
    if (options.manifest_mode == ManifestMode::kLoad || (exists && options.manifest_mode == ManifestMode::kAuto)) {
        return load(options);
    }
    if (exists) {
        return Error{Errc::kFailedPrecondition, options.manifest_path + " exists already",
                     "manifests are never overwritten: use --manifest-mode load or another name"};
    }
    return make(options, load_tokens);
}

void fill_counts(const BenchServeOptions& options, const Manifest& manifest, MeasureOptions& measure) {
    const RowCounts counts = count_rows(manifest);
    measure.num_prompts =
        given(options, "num-prompts") ? options.generate.num_prompts : static_cast<std::int64_t>(counts.measure);
    measure.warmup_requests =
        given(options, "warmup-requests") ? options.generate.warmup_requests : static_cast<std::int64_t>(counts.warmup);
}

}  // namespace megamoe::lab
