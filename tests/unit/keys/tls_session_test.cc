#include "keys/tls_session.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/keys/bytes.h"

namespace leeway::keys {
namespace {

using Bytes = std::vector<std::byte>;
using Side = TlsSession::Side;

std::shared_ptr<const TlsContext> context(const std::string& digits) {
  std::string lines;
  for (const char digit : digits) lines += line_of(digit);
  return *TlsContext::make(std::make_shared<Secrets>(*Secrets::parse(lines, "test")));
}

Bytes bytes_of(std::string_view text) {
  return copy_of(std::as_bytes(std::span(text)));
}

// A TLS client and server whose bytes the test carries.
struct Pair {
  Pair(const std::string& client_secrets, const std::string& server_secrets)
      : client(context(client_secrets), Side::client),
        server(context(server_secrets), Side::server) {}

  // Carries messages until both sides are silent.
  void carry() {
    while (true) {
      const Bytes to_server = client.take_output();
      const Bytes to_client = server.take_output();
      if (to_server.empty() && to_client.empty()) return;
      sent.insert(sent.end(), to_server.begin(), to_server.end());
      if (!to_server.empty()) (void)server.receive(to_server, server_heard);
      if (!to_client.empty()) (void)client.receive(to_client, client_heard);
    }
  }

  TlsSession client;
  TlsSession server;
  Bytes client_heard;
  Bytes server_heard;
  Bytes sent;  // by the client
};

TEST(TlsSession, CarriesWhatBothSidesSay) {
  Pair pair("1", "1");
  pair.client.say(bytes_of("put this"));
  pair.carry();
  ASSERT_TRUE(pair.client.is_open() && pair.server.is_open());
  EXPECT_EQ(pair.server_heard, bytes_of("put this"));
  pair.server.say(bytes_of("done"));
  pair.carry();
  EXPECT_EQ(pair.client_heard, bytes_of("done"));
}

Bytes hello_of(const std::string& digits) {
  TlsSession client(context(digits), Side::client);
  return client.take_output();
}

constexpr std::size_t kFirstMessageMax = 4096;

FirstMessage judged(const TlsContext& context, ByteSpan first) {
  return context.judge(first, kFirstMessageMax);
}

TEST(TlsContextJudge, TakesAFirstMessageThatNamesOneOfItsSecrets) {
  const auto own = context("12");
  EXPECT_EQ(judged(*own, hello_of("1")), FirstMessage::may_be_members);
  EXPECT_EQ(judged(*own, hello_of("2")), FirstMessage::may_be_members);
  EXPECT_EQ(judged(*own, hello_of("7")), FirstMessage::strangers);
}

TEST(TlsContextJudge, WaitsForTheWholeMessage) {
  const auto own = context("1");
  const Bytes hello = hello_of("7");
  for (std::size_t bytes = 0; bytes < hello.size(); ++bytes)
    ASSERT_EQ(judged(*own, ByteSpan(hello).first(bytes)), FirstMessage::unfinished) << bytes;
}

TEST(TlsContextJudge, RefusesWhatIsNoFirstMessage) {
  const auto own = context("1");
  EXPECT_EQ(judged(*own, Bytes(1, std::byte{0})), FirstMessage::strangers);
  EXPECT_EQ(judged(*own, from_hex("16030100")), FirstMessage::unfinished);
  EXPECT_EQ(judged(*own, from_hex("1603010000")), FirstMessage::strangers);
  EXPECT_EQ(judged(*own, from_hex("1603010ffb")), FirstMessage::unfinished);  // 4096 in all
  EXPECT_EQ(judged(*own, from_hex("1603010ffc")), FirstMessage::strangers);
}

TEST(TlsContextJudge, RefusesAFirstMessageThatCameBefore) {
  const auto own = context("1");
  const Bytes hello = hello_of("1");
  TlsSession server(own, Side::server);
  Bytes plain;
  EXPECT_EQ(judged(*own, hello), FirstMessage::may_be_members);
  EXPECT_TRUE(server.receive(hello, plain));
  EXPECT_EQ(judged(*own, hello), FirstMessage::strangers);
}

TEST(TlsSession, CarriesMoreThanARecordInPieces) {
  Pair pair("1", "1");
  const Bytes large(100'000, std::byte{7});
  pair.client.say(large);
  pair.carry();
  EXPECT_EQ(pair.server_heard, large);
}

TEST(TlsSession, TakesTheBytesOneByOne) {
  Pair pair("1", "1");
  pair.client.say(bytes_of("hello"));
  for (int i = 0; i < 4; ++i) {
    for (const std::byte byte : pair.client.take_output())
      EXPECT_TRUE(pair.server.receive(ByteSpan(&byte, 1), pair.server_heard));
    for (const std::byte byte : pair.server.take_output())
      EXPECT_TRUE(pair.client.receive(ByteSpan(&byte, 1), pair.client_heard));
  }
  EXPECT_EQ(pair.server_heard, bytes_of("hello"));
}

TEST(TlsSession, TakesAnOlderSecretOfTheServers) {
  Pair pair("2", "12");
  pair.carry();
  EXPECT_TRUE(pair.client.is_open() && pair.server.is_open());
}

TEST(TlsSession, RefusesAnotherSecret) {
  for (const auto& [client, server] : {std::pair("1", "2"), std::pair("12", "2")}) {
    Pair pair(client, server);
    pair.client.say(bytes_of("put this"));
    pair.carry();
    EXPECT_TRUE(pair.server.has_failed());
    EXPECT_TRUE(pair.client.has_failed());
    EXPECT_TRUE(pair.server_heard.empty());
  }
}

// The first message shows everyone the identity that names a secret, so knowing the identity proves
// nothing.
TEST(TlsSession, RefusesWhoKnowsTheIdentityAlone) {
  Pair honest("1", "1");
  Bytes hello = honest.client.take_output();
  hello.back() ^= std::byte{1};  // a byte of the binder, which proves the secret
  TlsSession server(context("1"), Side::server);
  Bytes heard;
  EXPECT_FALSE(server.receive(hello, heard));
}

TEST(TlsSession, HearsNothingFromAReplayedConversation) {
  Pair pair("1", "1");
  pair.client.say(bytes_of("put this"));
  pair.carry();
  ASSERT_EQ(pair.server_heard, bytes_of("put this"));
  TlsSession server(context("1"), Side::server);
  Bytes heard;
  EXPECT_FALSE(server.receive(pair.sent, heard));
  EXPECT_TRUE(heard.empty());
  EXPECT_FALSE(server.is_open());
}

// Each replayed message would otherwise cost the server an X25519 exchange.
TEST(TlsSession, RefusesAFirstMessageThatItHeardBefore) {
  const auto same = context("1");
  const Bytes hello = TlsSession(same, Side::client).take_output();
  Bytes heard;
  TlsSession first(same, Side::server);
  TlsSession second(same, Side::server);
  EXPECT_TRUE(first.receive(hello, heard));
  EXPECT_FALSE(second.receive(hello, heard));
}

TEST(TlsSession, RefusesJunk) {
  for (const std::string& junk : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100, '\0'),
                                  std::string("LWRS\0\1\0\0", 8)}) {
    TlsSession server(context("1"), Side::server);
    TlsSession client(context("1"), Side::client);
    Bytes heard;
    EXPECT_FALSE(server.receive(bytes_of(junk), heard));
    EXPECT_FALSE(client.receive(bytes_of(junk), heard));
    EXPECT_FALSE(server.receive(bytes_of("more"), heard));
    EXPECT_TRUE(heard.empty());
  }
}

TEST(TlsSession, RefusesAHandshakeWithoutEnd) {
  TlsSession server(context("1"), Side::server);
  Bytes heard;
  // These records claim to be parts of a handshake message of 16 MiB.
  Bytes record = from_hex(
      "1603010400"
      "01ffffff");
  record.resize(5 + 1024);
  int taken = 0;
  while (taken < 100 && server.receive(record, heard)) ++taken;
  EXPECT_LT(taken, 20);
}

}  // namespace
}  // namespace leeway::keys
