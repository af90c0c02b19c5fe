// scripted_server MODEL_DIR [API_KEY]: the real server over an engine without a model, for black-box tests of the API.
// An answer repeats its prompt; in thinking mode some reasoning stands before it.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "frontend/server.h"
#include "frontend/testing/scripted_backend.h"
#include "frontend/text/tokenizer.h"

int main(int argc, char** argv) {
    using namespace megamoe;
    if (argc < 2) {
        fmt::print(stderr, "usage: scripted_server MODEL_DIR [API_KEY]\n");
        return 2;
    }
    const std::string model_dir = argv[1];
    auto tokenizer = text::Tokenizer::load(model_dir + "/tokenizer.json");
    if (!tokenizer) {
        fmt::print(stderr, "scripted_server: {}\n", to_string(tokenizer.error()));
        return 1;
    }
    constexpr std::int32_t kEndOfSentence = 1;
    const std::int32_t think = tokenizer.value()->id_of("<think>").value_or(-1);
    const std::vector<std::int32_t> reasoning = tokenizer.value()->encode("I think about it.</think>");
    frontend::testing::ScriptedBackend backend(2);
    backend.set_script(
        [&](const engine::Request& request) {
            std::vector<std::int32_t> script = request.prompt.back() == think ? reasoning : std::vector<std::int32_t>();
            const auto wanted =
                static_cast<std::size_t>(request.sampling.ignore_eos ? request.sampling.max_tokens : 64);
            for (std::size_t i = 0; script.size() < wanted; ++i) {
                script.push_back(request.prompt[i % request.prompt.size()]);
            }
            return script;
        },
        kEndOfSentence);
    backend.run();
    auto server = frontend::Server::start({.port = 0, .api_key = argc > 2 ? argv[2] : "", .drain_timeout_ms = 1000},
                                          backend, tokenizer.value(),
                                          {.served_name = "mini",
                                           .model_path = model_dir,
                                           .context_length = 1024,
                                           .vocab_size = tokenizer.value()->vocab_size(),
                                           .num_ranks = 2});
    if (!server) {
        fmt::print(stderr, "scripted_server: {}\n", to_string(server.error()));
        return 1;
    }
    log::info(fmt::format("event=ready url=http://127.0.0.1:{}", server.value()->port()));
    return server.value()->run_until_signal() ? 0 : 1;
}
