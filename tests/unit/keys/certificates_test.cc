#include "keys/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "keys/tls_session.h"
#include "unit/keys/authority.h"
#include "unit/keys/bytes.h"

namespace leeway::keys {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

std::string error_of(const CertificateFiles& files) {
  const auto read = Certificates::read(files);
  if (read.ok()) return "";
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
  return std::string(read.status().text());
}

TEST(CertificatesRead, TellTheJob) {
  Authority authority;
  const auto read = Certificates::read(authority.member_of("llama-7"));
  ASSERT_TRUE(read.ok()) << read.status().c_str();
  EXPECT_EQ((*read)->job(), "llama-7");
  EXPECT_EQ((*read)->fingerprint().size(), 64u);
}

TEST(CertificatesRead, OtherNamesBesideTheJobDoNotMatter) {
  Authority authority;
  const auto files =
      authority.issue("DNS:host1,URI:https://example.org,URI:urn:leeway:a,IP:10.0.0.1");
  EXPECT_EQ((*Certificates::read(files))->job(), "a");
}

TEST(CertificatesRead, AllThreeFilesAreNeeded) {
  Authority authority;
  CertificateFiles files = authority.member_of("a");
  files.key.clear();
  EXPECT_THAT(error_of(files), HasSubstr("LEEWAY_TLS_KEY is not set"));
  EXPECT_THAT(error_of({.key = "x"}), HasSubstr("LEEWAY_TLS_CA is not set"));
}

TEST(CertificatesRead, WhatCannotBeReadIsNamed) {
  Authority authority;
  const CertificateFiles good = authority.member_of("a");
  CertificateFiles files = good;
  files.authority = "/nowhere/ca.pem";
  EXPECT_THAT(error_of(files),
              AllOf(HasSubstr("LEEWAY_TLS_CA /nowhere/ca.pem"), HasSubstr("No such file")));
  files = good;
  files.certificate = good.key;
  EXPECT_THAT(error_of(files), HasSubstr("no certificate in it"));
  files = good;
  files.key = authority.path("not_a_key");
  std::ofstream(files.key) << "nothing\n";
  ::chmod(files.key.c_str(), 0600);
  EXPECT_THAT(error_of(files), HasSubstr("no private key in it"));
  files = good;
  files.certificate = authority.path("");
  EXPECT_THAT(error_of(files), HasSubstr("not a plain file"));
}

TEST(CertificatesRead, KeyThatOthersCanReadIsRefused) {
  Authority authority;
  const CertificateFiles files = authority.member_of("a");
  ::chmod(files.key.c_str(), 0640);
  EXPECT_EQ(error_of(files), "") << "a group of this process";
  ::chmod(files.key.c_str(), 0644);
  EXPECT_THAT(error_of(files), AllOf(HasSubstr("LEEWAY_TLS_KEY"), HasSubstr("chmod 600")));
}

TEST(CertificatesRead, KeyOfAnotherCertificateIsRefused) {
  Authority authority;
  CertificateFiles files = authority.member_of("a");
  files.key = authority.member_of("a").key;
  EXPECT_THAT(error_of(files), HasSubstr("not the key of the certificate"));
}

TEST(CertificatesRead, CertificateWithoutAJobOrWithTwoIsRefused) {
  Authority authority;
  for (const char* names :
       {"", "DNS:host1", "URI:urn:leeway:a,URI:urn:leeway:b", "URI:urn:leeway:"})
    EXPECT_THAT(error_of(authority.issue(names)), HasSubstr("URI:urn:leeway:JOB")) << names;
}

TEST(CertificatesRead, TimeIsLookedAt) {
  Authority authority;
  EXPECT_THAT(error_of(authority.issue("URI:urn:leeway:a", -3600, -60)),
              AllOf(HasSubstr("it has expired: valid from "), HasSubstr(" GMT until "),
                    HasSubstr(", and this machine's clock says ")));
  EXPECT_THAT(error_of(authority.issue("URI:urn:leeway:a", 3600, 7200)),
              AllOf(HasSubstr("it is not valid yet: valid from "), HasSubstr("clock says ")));
}

TEST(CertificatesRead, AnotherAuthoritysCertificateIsRefused) {
  Authority authority;
  Authority stranger("stranger");
  CertificateFiles files = stranger.member_of("a");
  files.authority = authority.path("ca.pem");
  EXPECT_THAT(error_of(files), HasSubstr("LEEWAY_TLS_CA does not vouch for it"));
}

TEST(ReadCredentials, OfCertificatesAloneTellJobsApart) {
  Authority authority;
  const auto first = *read_credentials({.certificates = authority.member_of("a")});
  const auto second = *read_credentials({.certificates = authority.member_of("a")});
  const auto other = *read_credentials({.certificates = authority.member_of("b")});
  EXPECT_EQ(first->ids(), second->ids());
  EXPECT_NE(first->ids(), other->ids());
  EXPECT_FALSE(first->are_secret());
  EXPECT_NE(first->certificates(), nullptr);
}

TEST(ReadCredentials, ASecretNeedsNoFile) {
  const std::string line = secret_digits('7');
  const auto given = *read_credentials({.secret_text = line});
  EXPECT_EQ(given->ids(), Secrets::parse(line, "test")->ids());
  EXPECT_TRUE(given->are_secret());
  const auto both = read_credentials({.secret = "/a/file", .secret_text = line});
  EXPECT_EQ(both.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(both.status().text().find(line), std::string_view::npos);
}

TEST(ReadCredentials, OfNothingAreNone) {
  EXPECT_EQ(*read_credentials({}), nullptr);
}

// ---- handshakes ----

// A TLS client and server whose bytes the test carries.
struct Handshake {
  Handshake(std::shared_ptr<const Secrets> client_has, std::shared_ptr<const Secrets> server_has)
      : client(*TlsContext::make(std::move(client_has)), TlsSession::Side::client),
        server(*TlsContext::make(std::move(server_has)), TlsSession::Side::server) {
    client.say(as_bytes("hello"));
    while (true) {
      const Bytes to_server = client.take_output();
      const Bytes to_client = server.take_output();
      if (to_server.empty() && to_client.empty()) return;
      if (!to_server.empty()) (void)server.receive(to_server, heard);
      if (!to_client.empty()) (void)client.receive(to_client, answered);
    }
  }
  static Bytes as_bytes(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

  TlsSession client;
  TlsSession server;
  Bytes heard;
  Bytes answered;
};

std::shared_ptr<const Secrets> with(const CertificateFiles& files) {
  return *read_credentials({.certificates = files});
}

TEST(TlsCertificates, MembersOfOneJobSpeak) {
  Authority authority;
  const Handshake pair(with(authority.member_of("a")), with(authority.member_of("a")));
  EXPECT_TRUE(pair.client.is_open() && pair.server.is_open());
  EXPECT_EQ(pair.heard, Handshake::as_bytes("hello"));
}

TEST(TlsCertificates, MemberOfAnotherJobIsRefusedAndToldSo) {
  Authority authority;
  const Handshake pair(with(authority.member_of("b")), with(authority.member_of("a")));
  EXPECT_TRUE(pair.client.has_failed());
  EXPECT_TRUE(pair.heard.empty());
  // The server also belongs to another job than the client, and the client judges first.
  EXPECT_THAT(pair.client.objection(), AllOf(HasSubstr("\"a\""), HasSubstr("\"b\"")));
}

// The client accepts the server, but the server refuses the client, as when the client's clock is
// behind.
TEST(TlsCertificates, ServerRefusesAndTheClientLearnsWhy) {
  Authority authority;
  Authority second("second");
  // The client trusts both authorities, the server only its own.
  CertificateFiles files = second.member_of("a");
  std::ofstream(files.authority, std::ios::app) << std::ifstream(authority.path("ca.pem")).rdbuf();
  const Handshake pair(with(files), with(authority.member_of("a")));
  EXPECT_TRUE(pair.server.has_failed());
  EXPECT_TRUE(pair.heard.empty());
  ASSERT_TRUE(pair.client.refusal().has_value());
  EXPECT_THAT(*pair.client.refusal(), HasSubstr("unknown ca"));
}

TEST(TlsCertificates, SelfSignedStrangerIsRefused) {
  Authority authority;
  Authority stranger("stranger");
  const Handshake as_client(with(stranger.member_of("a")), with(authority.member_of("a")));
  EXPECT_TRUE(as_client.client.has_failed());
  EXPECT_TRUE(as_client.heard.empty());
  EXPECT_FALSE(as_client.client.refusal().has_value());
}

TEST(TlsCertificates, ProcessWithASecretAloneIsRefused) {
  Authority authority;
  const auto secret = std::make_shared<Secrets>(*Secrets::parse(line_of('1'), "test"));
  const Handshake as_client(secret, with(authority.member_of("a")));
  EXPECT_TRUE(as_client.server.has_failed());
  const Handshake as_server(with(authority.member_of("a")), secret);
  EXPECT_TRUE(as_server.client.has_failed());
}

// The name of a job is no secret, so knowing it proves nothing.
TEST(TlsCertificates, NameOfTheJobAsASecretIsRefused) {
  Authority authority;
  auto named = Secrets::of_job(*Certificates::read(authority.member_of("a")));
  named.use(nullptr);
  const Handshake as_client(std::make_shared<Secrets>(named), with(authority.member_of("a")));
  EXPECT_TRUE(as_client.server.has_failed());
  EXPECT_TRUE(as_client.heard.empty());
}

}  // namespace
}  // namespace leeway::keys
