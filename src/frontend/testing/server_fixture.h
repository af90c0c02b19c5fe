// The whole server over real sockets and a scripted engine: what a test needs to start and ask it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "frontend/server.h"
#include "frontend/testing/scripted_backend.h"
#include "frontend/testing/test_client.h"
#include "frontend/text/tokenizer.h"

namespace megamoe::frontend::testing {

using nlohmann::json;

inline std::shared_ptr<const text::Tokenizer> mini() {
    static const auto tokenizer = text::Tokenizer::load("models/mini/tokenizer.json");
    return tokenizer.value();
}

class ServerTest : public ::testing::Test {
  protected:
    void start(ServerOptions options = {}) {
        options.port = 0;
        auto started = Server::start(options, backend_, mini(),
                                     {.served_name = "mini",
                                      .model_path = "models/mini-v4",
                                      .context_length = 512,
                                      .vocab_size = mini()->vocab_size(),
                                      .num_ranks = 2,
                                      .config_json = R"({"page_size":256})"});
        ASSERT_TRUE(started) << started.error().what;
        server_ = std::move(started).take();
    }
    // Answers come by themselves.
    void start_running(const ServerOptions& options = {}) {
        backend_.run();
        start(options);
    }
    // The answer is always this text, then the stop token.
    void answer_with(const std::string& text) {
        backend_.set_script([ids = mini()->encode(text)](const engine::Request&) { return ids; }, kStopToken);
    }
    void TearDown() override { server_.reset(); }

    TestClient connect() const { return TestClient(server_->port()); }
    Reply get(const std::string& path, const std::string& headers = {}) const {
        TestClient client = connect();
        client.get(path, headers);
        return client.receive();
    }
    Reply post(const std::string& path, const std::string& body, const std::string& headers = {}) const {
        TestClient client = connect();
        client.post(path, body, headers);
        return client.receive();
    }
    static json body_of(const Reply& reply) {
        EXPECT_EQ(reply.status, 200) << reply.body;
        return json::parse(reply.body, nullptr, false);
    }
    static std::string error_of(const Reply& reply) {
        const json body = json::parse(reply.body, nullptr, false);
        return body.is_object() && body.contains("error") ? body["error"]["message"].get<std::string>() : "no error";
    }
    // The text of a streamed completion.
    static std::string text_of(const Reply& reply) {
        std::string text;
        for (const std::string& event : reply.events()) {
            const json chunk = json::parse(event, nullptr, false);
            if (chunk.is_object() && chunk.contains("choices") && !chunk["choices"].empty()) {
                text += chunk["choices"][0]["text"].get<std::string>();
            }
        }
        return text;
    }

    static constexpr std::int32_t kStopToken = 1;
    ScriptedBackend backend_{2};
    std::unique_ptr<Server> server_;
};

}  // namespace megamoe::frontend::testing
