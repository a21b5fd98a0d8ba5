// Strangers while ranks with a secret meet. Nothing that they send may end the job or take part in
// it. Each test is one attack, during which a job of four ranks must start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "attack/strangers.h"
#include "keys/certificates.h"
#include "keys/tls_session.h"
#include "rendezvous/meeting.h"
#include "unit/keys/authority.h"

namespace leeway::attack {
namespace {

using namespace std::chrono_literals;
using namespace rendezvous;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kRanks = 4;
constexpr std::uint64_t kFloodConnections = 500;

LocalConfiguration member(int rank, std::uint16_t port, std::string_view secrets = "1") {
  LocalConfiguration local = configuration(rank, kRanks, port);
  local.identity = identity_with(secrets);
  return local;
}

// A job whose last rank starts when the test calls expect_start(). Its other ranks begin to meet at
// once.
class Job {
 public:
  explicit Job(std::uint16_t port) : port_(port) {
    for (int rank = 0; rank + 1 < kRanks; ++rank) joining_.push_back(join(member(rank, port)));
  }

  // Starts the last rank. Expects that all ranks are in one group.
  void expect_start() {
    joining_.push_back(join(member(kRanks - 1, port_)));
    std::vector<Group> groups;
    for (Joining& one : joining_) {
      const auto group = one.get();
      ASSERT_TRUE(group.ok()) << group.status().c_str();
      groups.push_back(*group);
    }
    for (const Group& group : groups) expect_equal(group, groups[0]);
  }

 private:
  const std::uint16_t port_;
  std::vector<Joining> joining_;
};

// Returns the first TLS message of a client that holds these secrets.
std::string client_hello(std::string_view secrets) {
  const auto context = *keys::TlsContext::make(identity_with(secrets)->secrets);
  keys::TlsSession session(context, keys::TlsSession::Side::client);
  const auto bytes = session.take_output();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns a request that stores a wrong text where ranks look for rank 0's invitation. At a server
// without a secret this would end the meeting.
std::string misfit() {
  const MeetingKeys keys(configuration(1, kRanks, 1));
  return greeting() + request_of(StoreOperation::put, keys.root(), "not an invitation");
}

// A secret file that the destructor deletes.
class KeyFile {
 public:
  explicit KeyFile(char digit)
      : path_(::testing::TempDir() + "leeway_attack_" + std::to_string(::getpid()) + digit) {
    std::ofstream(path_) << secret_digits(digit) << "\n";
    ::chmod(path_.c_str(), 0600);
  }
  ~KeyFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

TEST(JoinAttack, JobStartsBesideAFloodOfHellosThatDoNotFit) {
  const std::uint16_t port = free_port();
  Job job(port);
  const Flood flood(port, saying(misfit()));
  flood.await(kFloodConnections);
  job.expect_start();
}

TEST(JoinAttack, JobStartsBesideAFloodOfJunk) {
  const std::uint16_t port = free_port();
  Job job(port);
  std::string junk(600, '\0');
  for (std::size_t i = 0; i < junk.size(); ++i) junk[i] = static_cast<char>(i * i * 31 + i / 7);
  const Flood flood(port, saying(junk));
  flood.await(kFloodConnections);
  job.expect_start();
}

TEST(JoinAttack, JobStartsBesideAFloodOfHandshakesThatAreNeverFinished) {
  const std::uint16_t port = free_port();
  Job job(port);
  // Attackers can replay the first message of a connection, which is not secret.
  const Flood flood(port, saying(client_hello("1")));
  flood.await(kFloodConnections);
  job.expect_start();
}

TEST(JoinAttack, JobStartsBesideProcessesThatHoldAnotherSecret) {
  const std::uint16_t port = free_port();
  Job job(port);
  const Flood flood(port, saying(client_hello("7")));
  flood.await(kFloodConnections);
  job.expect_start();
}

TEST(JoinAttack, JobStartsBesideConnectionsThatAreHeldAndSayNothing) {
  const std::uint16_t port = free_port();
  Job job(port);
  const Held silent(port, 300, "");
  job.expect_start();
}

// Slow-loris: each connection begins a TLS record and never ends it.
TEST(JoinAttack, JobStartsBesideConnectionsThatDrip) {
  const std::uint16_t port = free_port();
  Job job(port);
  const Held dripping(port, 300, client_hello("1").substr(0, 100));
  job.expect_start();
}

// A process that holds another job's secret is no member of this job.
TEST(JoinAttack, ProcessOfAnotherJobCannotPutOrGetAnything) {
  const std::uint16_t port = free_port();
  Job job(port);
  const KeyFile other_jobs('7');
  const auto store =
      *TcpRendezvous::connect(rendezvous_at(port), {.secret_file = other_jobs.path()});
  const MeetingKeys keys(configuration(1, kRanks, 1));
  const auto got = store->get(keys.root(), 1s);
  EXPECT_EQ(got.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(got.status().c_str(), HasSubstr("did not prove this process's secret"));
  job.expect_start();
}

TEST(JoinAttack, ProcessWithoutASecretIsToldWhatItLacks) {
  const std::uint16_t port = free_port();
  Job job(port);
  LocalConfiguration plain = configuration(1, kRanks, port);
  const auto refused = join_group(plain);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(text(refused), AllOf(HasSubstr("wants a secret"), HasSubstr("LEEWAY_SECRET_FILE")));
  job.expect_start();
}

// Repeats on another connection all bytes that one rank sent. If the server believed the copy, two
// processes would claim to be that rank.
TEST(JoinAttack, ReplayedConversationIsNotHeard) {
  const std::uint16_t port = free_port();
  Job job(port);
  // This forwarder records what the last rank says.
  const std::uint16_t tapped = free_port();
  asio::io_context io;
  tcp::acceptor acceptor(io, loopback(tapped));
  std::string said;
  std::thread tap([&] {
    tcp::socket rank = acceptor.accept();
    tcp::socket server(io);
    std::error_code absent;
    do {
      server = tcp::socket(io);
      server.connect(loopback(port), absent);
    } while (absent);
    std::thread back([&] {
      std::array<char, 4096> bytes{};
      std::error_code error;
      while (true) {
        const std::size_t got = server.read_some(asio::buffer(bytes), error);
        if (got == 0) break;
        asio::write(rank, asio::buffer(bytes.data(), got), error);
      }
      rank.shutdown(tcp::socket::shutdown_both, error);
    });
    std::array<char, 4096> bytes{};
    std::error_code error;
    while (true) {
      const std::size_t got = rank.read_some(asio::buffer(bytes), error);
      if (got == 0) break;
      said.append(bytes.data(), got);
      asio::write(server, asio::buffer(bytes.data(), got), error);
    }
    server.shutdown(tcp::socket::shutdown_both, error);
    back.join();
  });
  LocalConfiguration last = member(kRanks - 1, tapped);
  last.join_timeout = 2s;
  // The recorded rank looks for another job's name, so this job goes on waiting.
  last.name = "nobody";
  EXPECT_FALSE(join_group(last).ok());
  tap.join();
  ASSERT_GT(said.size(), 200u);
  for (int i = 0; i < 20; ++i) {
    LoopbackPeer replay(port, said);
    while (!replay.hangs_up()) continue;  // the answer in the handshake, an alert
  }
  job.expect_start();
}

// An impostor holds rank 0's port first, and is gone when the real rank 0 comes.
TEST(JoinAttack, ImpostorInRankZerosPlaceIsWaitedOut) {
  const std::uint16_t port = free_port();
  std::vector<Joining> guests;
  {
    LoopbackListener impostor(port);
    for (int rank = 1; rank < kRanks; ++rank) guests.push_back(join(member(rank, port)));
    for (int i = 0; i < 6; ++i) {
      LoopbackPeer victim = impostor.accept();
      victim.say(i % 2 == 0 ? std::string("HTTP/1.1 400 Bad Request\r\n\r\n")
                            : std::string("\x15\x03\x03\0\2\2\x28", 7));
      victim.hang_up();
    }
  }
  const auto root = join_group(member(0, port));
  EXPECT_TRUE(root.ok()) << root.status().c_str();
  for (Joining& guest : guests) {
    const auto group = guest.get();
    EXPECT_TRUE(group.ok()) << group.status().c_str();
  }
}

// A process that has the secret, but does not fit the job, ends the meeting, as a stranger cannot.
// All ranks must be told why.
TEST(JoinAttack, MisfitThatKnowsTheSecretEndsTheMeetingForAll) {
  const std::uint16_t port = free_port();
  std::vector<Joining> joining;
  for (int rank = 0; rank + 1 < kRanks; ++rank) joining.push_back(join(member(rank, port)));
  LocalConfiguration misfit = member(kRanks - 1, port);
  misfit.window_bytes = 4096;
  joining.push_back(join(misfit));
  for (Joining& one : joining) {
    const auto group = one.get();
    EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(text(group), HasSubstr("LEEWAY_WINDOW_BYTES"));
  }
}

TEST(JoinAttack, OlderSecretIsTakenStill) {
  const std::uint16_t port = free_port();
  std::vector<Joining> joining;
  joining.push_back(join(member(0, port, "21")));
  joining.push_back(join(member(1, port, "12")));
  joining.push_back(join(member(2, port, "21")));
  joining.push_back(join(member(3, port, "1")));
  for (Joining& one : joining) {
    const auto group = one.get();
    EXPECT_TRUE(group.ok()) << group.status().c_str();
  }
}

// Certificates ------------------------------------------------------------------------------------

LocalConfiguration with_certificates(int rank, std::uint16_t port,
                                     const keys::CertificateFiles& files) {
  LocalConfiguration local = configuration(rank, kRanks, port);
  local.identity = *keys::OwnIdentity::make(*keys::read_credentials({.certificates = files}));
  return local;
}

// Connects with the certificate in `files`, accepts any server, and sends misfit().
void try_to_enter(std::uint16_t port, const keys::CertificateFiles& files) {
  SSL_CTX* const context = ::SSL_CTX_new(::TLS_client_method());
  ::SSL_CTX_use_certificate_file(context, files.certificate.c_str(), SSL_FILETYPE_PEM);
  ::SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM);
  asio::io_context io;
  tcp::socket socket(io);
  socket.connect(loopback(port));
  SSL* const ssl = ::SSL_new(context);
  ::SSL_set_fd(ssl, socket.native_handle());
  EXPECT_EQ(::SSL_connect(ssl), 1);  // from this side's view, the handshake is over
  const std::string request = misfit();
  (void)::SSL_write(ssl, request.data(), static_cast<int>(request.size()));
  char answer = 0;
  EXPECT_LE(::SSL_read(ssl, &answer, 1), 0) << "an answer to a stranger";
  ::SSL_free(ssl);
  ::SSL_CTX_free(context);
}

class CertificateAttack : public ::testing::Test {
 protected:
  CertificateAttack() {
    for (int rank = 0; rank + 1 < kRanks; ++rank)
      joining_.push_back(join(with_certificates(rank, port_, authority_.member_of("a"))));
    LoopbackPeer(port_, "");  // returns when the server is there
  }
  void expect_start() {
    joining_.push_back(join(with_certificates(kRanks - 1, port_, authority_.member_of("a"))));
    // Groups live until all ranks are done, because rank 0's server ends with its group, and slower
    // ranks may still read from it.
    std::vector<Result<Group>> groups;
    for (Joining& one : joining_) {
      groups.push_back(one.get());
      ASSERT_TRUE(groups.back().ok()) << groups.back().status().c_str();
      EXPECT_NE(groups.back()->keys, nullptr);
    }
  }

  keys::Authority authority_;
  const std::uint16_t port_ = free_port();
  std::vector<Joining> joining_;
};

TEST_F(CertificateAttack, CertificateOfAnotherJobDoesNotEnter) {
  try_to_enter(port_, authority_.member_of("b"));
  expect_start();
}

TEST_F(CertificateAttack, ExpiredCertificateDoesNotEnter) {
  try_to_enter(port_, authority_.issue("URI:urn:leeway:a", -7200, -3600));
  expect_start();
}

TEST_F(CertificateAttack, StrangersAuthorityDoesNotEnter) {
  keys::Authority stranger("stranger");
  try_to_enter(port_, stranger.member_of("a"));
  expect_start();
}

TEST_F(CertificateAttack, FloodsOfJunkAndUnfinishedHandshakesDoNotPreventTheStart) {
  const auto context =
      *keys::TlsContext::make(*keys::read_credentials({.certificates = authority_.member_of("a")}));
  keys::TlsSession session(context, keys::TlsSession::Side::client);
  const auto hello = session.take_output();
  const Flood unfinished(port_,
                         saying({reinterpret_cast<const char*>(hello.data()), hello.size()}));
  const Flood junk(port_, saying(std::string(600, '\x5a')));
  unfinished.await(200);
  expect_start();
}

// Rank 0 refuses a joining rank, although that rank trusts rank 0's certificate. The joining rank
// must be told why at once.
TEST_F(CertificateAttack, GuestThatIsNotTakenIsToldAtOnce) {
  keys::Authority second("second");
  keys::CertificateFiles files = second.member_of("a");
  std::ofstream(files.authority, std::ios::app) << std::ifstream(authority_.path("ca.pem")).rdbuf();
  const Stopwatch watch;
  const auto refused = join_group(with_certificates(kRanks - 1, port_, files));
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(text(refused), HasSubstr("does not take this process's certificate"));
  EXPECT_LT(watch.elapsed(), 10s);
  expect_start();
}

TEST(PublicAddress, IsRefusedWithoutASecret) {
  LocalConfiguration local = configuration(1, 2, 1);
  local.data_address = {std::byte{9}, std::byte{9}, std::byte{9}, std::byte{9}};
  const auto refused = join_group(local);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(text(refused),
              AllOf(HasSubstr("9.9.9.9"), HasSubstr("leeway keygen"),
                    HasSubstr("LEEWAY_SECRET_FILE"), HasSubstr("LEEWAY_INSECURE=1")));
}

TEST(PublicAddress, IsRefusedAsTheRendezvousToo) {
  const auto served = TcpRendezvous::serve("9.9.9.9:4000");
  EXPECT_EQ(served.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(served.status().c_str(), HasSubstr("leeway keygen"));
  const auto store = *TcpRendezvous::connect("9.9.9.9:4000");
  const auto got = store->get("key", 1s);
  EXPECT_EQ(got.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(got.status().c_str(), HasSubstr("leeway keygen"));
}

TEST(PublicAddress, IsTakenInALaboratory) {
  const std::uint16_t port = free_port();
  LocalConfiguration local = configuration(1, 2, port);
  local.data_address = {std::byte{9}, std::byte{9}, std::byte{9}, std::byte{9}};
  local.insecure = true;
  Joining other = join(local);
  const auto group = join_group(configuration(0, 2, port));
  EXPECT_TRUE(group.ok()) << group.status().c_str();
  EXPECT_TRUE(other.get().ok());
}

}  // namespace
}  // namespace leeway::attack
