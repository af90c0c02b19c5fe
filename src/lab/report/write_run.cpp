#include "lab/report/write_run.h"

#include "lab/report/environment.h"
#include "lab/report/result_folder.h"
#include "lab/report/result_json.h"

namespace megamoe::lab {

Result<Done> write_run(const std::string& folder, const Measured& run, const MeasureOptions& options,
                       const Manifest& manifest, const RunFacts& facts, const WriteOptions& write) {
    MM_TRY(ResultFolder files, ResultFolder::create(folder));
    MM_TRY_DONE(files.add("result.json", result_json(run, options, manifest, facts)));
    if (write.detailed) {
        MM_TRY_DONE(files.add("requests.jsonl", requests_jsonl(run, write.chunks)));
    }
    MM_TRY_DONE(files.add("client.json", client_json(run, options)));
    std::string commands = "# client\n" + facts.client_command + "\n";
    if (!facts.server_command.empty()) {
        commands += "# server\n" + facts.server_command + "\n";
    }
    MM_TRY_DONE(files.add("command.txt", commands));
    MM_TRY_DONE(files.add("env.json", environment_json(facts.client_command)));
    if (!run.server_info.empty()) {
        MM_TRY_DONE(files.add("server/server_info.json", run.server_info));
    }
    return files.seal();
}

}  // namespace megamoe::lab
