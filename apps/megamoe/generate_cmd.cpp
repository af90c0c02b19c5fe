// megamoe model generate: one prompt through the real engine, in this process, without a server.
#include <fmt/format.h>

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/workers.h"
#include "cli.h"
#include "engine/engine.h"
#include "frontend/text/chat_encoder.h"
#include "frontend/text/detokenizer.h"
#include "frontend/text/tokenizer.h"
#include "model/loaded_model.h"

namespace megamoe::apps {
namespace {

constexpr std::string_view kCommand = "model generate";

// Updates from a rank's thread to this one. Shared with the sink, which may outlive the wait for the last update.
class Updates {
  public:
    void push(engine::Update update) {
        {
            const std::lock_guard lock(mutex_);
            queue_.push_back(std::move(update));
        }
        ready_.notify_one();
    }

    engine::Update pop() {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [this] { return !queue_.empty(); });
        engine::Update update = std::move(queue_.front());
        queue_.pop_front();
        return update;
    }

  private:
    std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<engine::Update> queue_;
};

struct Options {
    std::string model_path;
    std::string prompt;
    bool chat = false;
    bool thinking = false;
    bool verbose = false;
    std::string profile = "ds";
    EngineConfig engine;
    engine::SamplingParams sampling;
};

Result<std::vector<std::int32_t>> encode_prompt(const Options& options, const text::Tokenizer& tokenizer,
                                                const ModelGeometry& geometry) {
    if (options.chat) {
        text::ChatMessage message;
        message.content = options.prompt;
        MM_TRY(const auto rendered, text::render_chat(std::span(&message, 1), {.thinking = options.thinking}, nullptr));
        return tokenizer.encode(rendered.text, rendered.literal);
    }
    std::vector<std::int32_t> ids{geometry.bos_id};
    const auto text_ids = tokenizer.encode(options.prompt);
    ids.insert(ids.end(), text_ids.begin(), text_ids.end());
    return ids;
}

Result<Done> generate(const Options& options) {
    MM_TRY(auto tokenizer, text::Tokenizer::load(options.model_path + "/tokenizer.json"));
    Workers workers(options.engine.num_ranks * options.engine.threads_per_rank);
    MM_TRY(auto model, model::LoadedModel::load(options.model_path, workers, log::info));
    MM_TRY(auto prompt, encode_prompt(options, *tokenizer, model->geometry()));
    engine::Request request;
    request.id = RequestId{1};
    request.prompt = std::move(prompt);
    request.sampling = options.sampling;
    MM_TRY(auto engine, engine::Engine::start(options.engine, std::move(model)));

    const auto updates = std::make_shared<Updates>();
    const auto prompt_tokens = request.prompt.size();
    const std::int64_t start = now_ns();
    std::int64_t first = start;
    MM_TRY_DONE(
        engine->submit(std::move(request), [updates](engine::Update update) { updates->push(std::move(update)); }));
    text::Detokenizer detokenizer(tokenizer, /*skip_special=*/true);
    std::int64_t num_tokens = 0;
    for (;;) {
        const engine::Update update = updates->pop();
        if (update.finish == engine::FinishReason::kError) {
            return update.error;
        }
        if (update.token >= 0) {
            first = num_tokens++ == 0 ? now_ns() : first;
            fmt::print("{}", detokenizer.push(update.token));
            std::fflush(stdout);
        }
        if (update.finish != engine::FinishReason::kNone) {
            break;
        }
    }
    const double seconds = static_cast<double>(now_ns() - first) * 1e-9;
    fmt::print("{}\n", detokenizer.flush());
    fmt::print(stderr, "{} prompt tokens, first token after {:.3f} s, {} tokens at {:.1f} tokens/s\n", prompt_tokens,
               static_cast<double>(first - start) * 1e-9, num_tokens,
               num_tokens > 1 ? static_cast<double>(num_tokens - 1) / seconds : 0.0);
    engine->shutdown(0);
    return Done{};
}

}  // namespace

int generate_command(int argc, char** argv) {
    Options options;
    options.engine.threads_per_rank = 1;
    CLI::App app{"Continues a prompt with the engine in this process. Greedy, unless a temperature is given.",
                 "megamoe model generate"};
    auto& sampling = options.sampling;
    sampling.temperature = 0;
    sampling.max_tokens = 64;
    app.add_option("--model-path,--model", options.model_path, "checkpoint folder")->required();
    app.add_option("--prompt", options.prompt, "text to continue")->required();
    app.add_flag("--chat", options.chat, "the prompt is a user's message, to be answered");
    app.add_flag("--thinking", options.thinking, "with --chat: reason first");
    app.add_option("--max-tokens", sampling.max_tokens, "")->capture_default_str()->check(CLI::PositiveNumber);
    app.add_option("--temperature", sampling.temperature, "0 = greedy")->capture_default_str();
    app.add_option("--top-p", sampling.top_p, "")->capture_default_str();
    app.add_option("--top-k", sampling.top_k, "-1 = all")->capture_default_str();
    app.add_option("--seed", sampling.seed, "for a temperature above 0; default: drawn");
    app.add_option("--profile", options.profile, "numerics")->capture_default_str()->check(CLI::IsMember({"hf", "ds"}));
    app.add_option("--ep-size", options.engine.num_ranks, "expert-parallel ranks")
        ->capture_default_str()
        ->check(CLI::Range(1, 64));
    app.add_option("--threads-per-rank", options.engine.threads_per_rank, "")
        ->capture_default_str()
        ->check(CLI::Range(1, 4096));
    app.add_flag("--verbose", options.verbose, "log what the engine does, to stderr");
    if (const auto code = parse_or_exit(app, argc, argv)) {
        return *code;
    }
    options.engine.profile = options.profile == "hf" ? Profile::kHf : Profile::kDs;
    options.engine.max_running_requests = options.engine.num_ranks;
    log::set_level(options.verbose ? log::Level::kInfo : log::Level::kWarn);
    const auto done = generate(options);
    return done ? static_cast<int>(kExitDone) : fail(kCommand, done.error());
}

}  // namespace megamoe::apps
