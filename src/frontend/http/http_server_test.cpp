#include "frontend/http/http_server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "frontend/testing/test_client.h"

namespace megamoe::http {
namespace {

using frontend::testing::Reply;
using frontend::testing::TestClient;

// Answers "METHOD path body" at once, except below /stream and /never.
class HttpServerTest : public ::testing::Test {
  protected:
    void start(ListenOptions options = {}) {
        auto listening = HttpServer::listen(options);
        ASSERT_TRUE(listening) << listening.error().what;
        server_ = std::move(listening).take();
        server_->serve([this](Request request, std::shared_ptr<Exchange> exchange) {
            if (request.path == "/never") {
                exchange->on_disconnect([this] { gone_.set_value(); });
                kept_ = std::move(exchange);
                arrived_.set_value();
            } else if (request.path == "/stream") {
                exchange->begin({.content_type = "text/plain"});
                exchange->send("one ");
                exchange->send("two");
                exchange->finish();
            } else if (request.path != "/dropped") {
                exchange->respond(
                    {.content_type = "text/plain", .body = request.method + " " + request.path + " " + request.body});
            }
        });
    }
    void TearDown() override {
        if (server_) {
            server_->shutdown(0);
        }
    }
    TestClient connect() { return TestClient(server_->port()); }

    std::promise<void> arrived_;
    std::promise<void> gone_;
    std::shared_ptr<Exchange> kept_;
    std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersSeveralRequestsOnOneConnection) {
    start();
    TestClient client = connect();

    for (int i = 0; i < 3; ++i) {
        client.post("/echo", "body" + std::to_string(i));
        EXPECT_EQ(client.receive().body, "POST /echo body" + std::to_string(i));
    }
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
    start();
    TestClient client = connect();

    client.send("GET /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyzGET /stream HTTP/1.1\r\n\r\n");

    EXPECT_EQ(client.receive().body, "GET /a ");
    EXPECT_EQ(client.receive().body, "POST /b xyz");
    EXPECT_EQ(client.receive().body, "one two");
}

TEST_F(HttpServerTest, ReadsARequestThatComesByteByByte) {
    start();
    TestClient client = connect();

    for (const char byte :
         std::string("POST /slow HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")) {
        client.send(std::string(1, byte));
    }

    EXPECT_EQ(client.receive().body, "POST /slow abc");
}

TEST_F(HttpServerTest, ClosesWhenTheClientAsksForIt) {
    start();
    TestClient client = connect();

    client.get("/last", "Connection: close\r\n");

    const Reply reply = client.receive();
    EXPECT_EQ(reply.header("Connection"), "close");
    EXPECT_TRUE(client.is_at_end());
}

TEST_F(HttpServerTest, AnOldClientGetsItsStreamUntilTheEnd) {
    start();
    TestClient client = connect();

    client.send("GET /stream HTTP/1.0\r\n\r\n");

    EXPECT_EQ(client.receive().body, "one two");
    EXPECT_TRUE(client.is_at_end());
}

TEST_F(HttpServerTest, RefusesALargeBodyFromItsLengthAlone) {
    start({.max_body_bytes = 1000});
    TestClient client = connect();

    client.send("POST /big HTTP/1.1\r\nContent-Length: 100000000\r\n\r\nonly this much");

    const Reply reply = client.receive();
    EXPECT_EQ(reply.status, 413);
    EXPECT_TRUE(reply.has("larger than 1000 bytes")) << reply.body;
}

TEST_F(HttpServerTest, RefusesALargeChunkedBodyAndTheClientStillReadsWhy) {
    start({.max_body_bytes = 1000});
    TestClient client = connect();

    client.send("POST /big HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n" + std::string(0x2000, 'x') + "\r\n");

    EXPECT_EQ(client.receive().status, 413);
}

TEST_F(HttpServerTest, RefusesALargeHead) {
    start({.max_header_bytes = 1000});
    TestClient client = connect();

    client.get("/x", "X: " + std::string(2000, 'x') + "\r\n");

    EXPECT_EQ(client.receive().status, 431);
}

TEST_F(HttpServerTest, RefusesWhatIsNotHttp) {
    start();
    TestClient client = connect();

    client.send("\x16\x03\x01\x02 hello\r\n\r\n");

    EXPECT_EQ(client.receive().status, 400);
    EXPECT_TRUE(client.is_at_end());
}

TEST_F(HttpServerTest, AClientThatStopsInsideARequestIsTimedOut) {
    start({.header_timeout_ms = 20});
    TestClient client = connect();

    client.send("GET /half HTT");

    EXPECT_EQ(client.receive().status, 408);
}

TEST_F(HttpServerTest, AClientThatStopsInsideABodyIsTimedOut) {
    start({.body_timeout_ms = 20});
    TestClient client = connect();

    client.send("POST /half HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc");

    EXPECT_EQ(client.receive().status, 408);
}

TEST_F(HttpServerTest, AnIdleConnectionIsClosedWithoutAWord) {
    start({.idle_timeout_ms = 20, .linger_ms = 20});
    TestClient client = connect();

    EXPECT_TRUE(client.is_at_end());
}

TEST_F(HttpServerTest, InvitesAClientThatAsksBeforeItSendsABody) {
    start();
    TestClient client = connect();

    client.send("POST /e HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    ASSERT_TRUE(client.fill_until("100 Continue\r\n\r\n"));
    client.send("ok");

    EXPECT_TRUE(client.fill_until("POST /e ok"));
}

TEST_F(HttpServerTest, AHalfClosedClientGetsAnAnswerThatIsReady) {
    start();
    TestClient client = connect();

    client.get("/quick");
    client.half_close();

    EXPECT_EQ(client.receive().body, "GET /quick ");
}

TEST_F(HttpServerTest, NoticesACloseWhileARequestIsInWork) {
    start();
    TestClient client = connect();
    client.get("/never");
    arrived_.get_future().wait();

    client.close();

    gone_.get_future().wait();
}

TEST_F(HttpServerTest, NoticesAResetWhileARequestIsInWork) {
    start();
    TestClient client = connect();
    client.get("/never");
    arrived_.get_future().wait();

    client.reset();

    gone_.get_future().wait();
}

TEST_F(HttpServerTest, NoticesAHalfCloseWhileARequestIsInWork) {
    start();
    TestClient client = connect();
    client.get("/never");
    arrived_.get_future().wait();

    client.half_close();

    gone_.get_future().wait();
    EXPECT_TRUE(client.is_at_end());
}

TEST_F(HttpServerTest, ADroppedRequestIsAnsweredWith500) {
    start();
    TestClient client = connect();

    client.get("/dropped");

    EXPECT_EQ(client.receive().status, 500);
}

TEST_F(HttpServerTest, TurnsAwayMoreConnectionsThanAllowed) {
    start({.max_connections = 1});
    TestClient first = connect();
    first.get("/a");
    EXPECT_EQ(first.receive().status, 200);
    TestClient second = connect();

    EXPECT_EQ(second.receive().status, 503);
    first.get("/b");
    EXPECT_EQ(first.receive().status, 200);
}

TEST_F(HttpServerTest, AStalledReaderIsCutOff) {
    start({.stream_buffer_bytes = 1000, .write_timeout_ms = 50});
    TestClient client(server_->port(), /*receive_buffer=*/4096);
    client.get("/never");
    arrived_.get_future().wait();

    server_->post([this] {
        kept_->begin({});
        kept_->send(std::string(std::size_t{16} << 20, 'x'));
        EXPECT_TRUE(kept_->is_slow());
    });

    gone_.get_future().wait();
}

TEST_F(HttpServerTest, APortInUseIsNamedWithTheNextStep) {
    start();

    const auto second = HttpServer::listen({.port = server_->port()});

    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::kUnavailable);
    EXPECT_EQ(second.error().what,
              "cannot listen on 127.0.0.1:" + std::to_string(server_->port()) + ": Address already in use");
    EXPECT_NE(second.error().hint.find("--port"), std::string::npos);
}

TEST_F(HttpServerTest, AnAddressThatIsNotOursIsRefused) {
    const auto server = HttpServer::listen({.host = "192.0.2.1"});

    ASSERT_FALSE(server);
    EXPECT_TRUE(server.error().what.starts_with("cannot listen on 192.0.2.1:0: ")) << server.error().what;
}

TEST_F(HttpServerTest, ShutdownLetsAnswersBeWritten) {
    start();
    TestClient client = connect();
    client.get("/never");
    arrived_.get_future().wait();

    server_->post([this] {
        kept_->begin({});
        kept_->send("almost");
        kept_->send(" done");
        kept_->finish();
        kept_.reset();
    });
    server_->shutdown(5000);

    EXPECT_EQ(client.receive().body, "almost done");
}

}  // namespace
}  // namespace megamoe::http
