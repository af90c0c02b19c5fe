#include "lab/client/null_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "lab/cli.h"
#include "lab/cli/flags.h"
#include "lab/client/descriptor_limit.h"
#include "lab/core/interrupt.h"

namespace megamoe::lab {

int run_null_server(const std::vector<std::string>& args) {
    constexpr std::int64_t kMaxStreams = 16384;
    NullServerOptions options;
    options.port = 30000;
    CLI::App app("Answer with a known token schedule, to calibrate the client.", "megamoe bench null-server");
    app.option_defaults()->always_capture_default();
    app.add_option("--host", options.host);
    app.add_option("--port", options.port, "0 = any free one");
    app.add_option("--ttft-ms", options.ttft_ms);
    app.add_option("--gap-ms", options.gap_ms, "between chunks");
    app.add_option("--tokens-per-chunk", options.tokens_per_chunk);
    app.add_flag("--role-chunk", options.role_chunk, "an event without text first");
    app.add_flag("!--no-usage", options.usage, "never count tokens");
    app.add_option("--split-bytes", options.split_bytes, "write in pieces of this size");
    app.add_option("--extra-prompt-tokens", options.extra_prompt_tokens, "as a server that adds a BOS");
    app.add_option("--fail-every", options.fail_every, "HTTP 500 for every n-th request");
    app.add_option("--error-every", options.error_every, "an error event in every n-th stream");
    app.add_option("--short-every", options.short_every, "a token too few in every n-th stream");
    app.add_option("--cut-every", options.cut_every, "close in the middle of every n-th stream");
    app.add_option("--close-after", options.close_after, "requests a connection serves");
    if (std::find(args.begin(), args.end(), "--help") != args.end()) {
        fmt::print("{}", app.help());
        return code(Exit::kGood);
    }
    if (const auto parsed = parse_flags(app, args, {}); !parsed) {
        fmt::print(stderr, "error: {}\n", to_string(parsed.error()));
        return code(Exit::kUsage);
    }
    if (const auto raised = raise_descriptor_limit(kMaxStreams); !raised) {
        fmt::print(stderr, "warning: {}\n", to_string(raised.error()));
    }
    const InterruptGuard guard;
    const auto server = NullServer::start(options);
    if (!server) {
        fmt::print(stderr, "error: {}\n", to_string(server.error()));
        return code(Exit::kServerGone);
    }
    fmt::print("listening on http://{}:{}\n", options.host, server.value()->port());
    std::fflush(stdout);
    while (!interrupted()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    const NullServerStats stats = server.value()->stats();
    fmt::print("requests {} tokens {} peak streams {} connections {}\n", stats.requests, stats.tokens,
               stats.peak_streams, stats.connections);
    return code(Exit::kGood);
}

}  // namespace megamoe::lab
