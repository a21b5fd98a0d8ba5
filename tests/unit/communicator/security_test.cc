// Tests communicator options for a secret, a fixed port and public addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <asio/io_context.hpp>
#include <asio/ip/udp.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "leeway/communicator.h"
#include "support/secret_line.h"
#include "unit/rendezvous/loopback_peer.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

using Made = Result<std::unique_ptr<Communicator>>;

class Security : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_) << secret_digits('a') << "\n";
    ::chmod(path_.c_str(), 0600);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Options options(int rank) const {
    Options options;
    options.rendezvous = rendezvous::rendezvous_at(port_);
    options.transport = TransportKind::udp;
    options.rank = rank;
    options.world_size = 2;
    options.join_timeout = 20s;
    return options;
  }

  // Creates both ranks, on two threads.
  static std::vector<Made> create(const Options& first, const Options& second) {
    auto other = std::async(std::launch::async, [&] { return Communicator::create(second); });
    std::vector<Made> made;
    made.push_back(Communicator::create(first));
    made.push_back(other.get());
    return made;
  }

  const std::uint16_t port_ = rendezvous::free_port();
  const std::string path_ =
      ::testing::TempDir() + "leeway_security_" + std::to_string(::getpid()) + ".key";
};

TEST(Create, AGroupOfOneInABatchScriptOfSlurmIsSaid) {
  ::setenv("SLURM_NTASKS", "16", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Communicator::create(Options()).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("this process is a group of one: a batch script of Slurm has 16 tasks, and "
                        "srun starts them as ranks (srun PROGRAM)"));
  ::unsetenv("SLURM_NTASKS");
}

// If a misspelt variable were ignored, the group would be open to strangers without its operator
// knowing.
TEST_F(Security, AMisspeltSecretMakesNoGroupUnlessTheProgramNamesOne) {
  ::setenv("LEEWAY_SECRETFILE", path_.c_str(), 1);
  Options plain = options(1);
  plain.join_timeout = 50ms;
  const Status refused = Communicator::create(plain).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.c_str(), AllOf(HasSubstr("create: LEEWAY_SECRETFILE is no variable"),
                                     HasSubstr("if LEEWAY_SECRET_FILE is meant")));
  EXPECT_THAT(Options::from_environment().status().c_str(), HasSubstr("LEEWAY_SECRETFILE"));
  plain.secret_file = path_;
  EXPECT_EQ(Communicator::create(plain).status().code(), StatusCode::kUnavailable);
  plain.secret_file.clear();
  plain.world_size = 1;
  plain.rank = 0;
  EXPECT_TRUE(Communicator::create(plain).ok());
  ::unsetenv("LEEWAY_SECRETFILE");
}

TEST_F(Security, RanksWithASecretReduce) {
  Options first = options(0);
  Options second = options(1);
  first.secret_file = second.secret_file = path_;
  auto made = create(first, second);
  ASSERT_TRUE(made[0].ok()) << made[0].status().c_str();
  ASSERT_TRUE(made[1].ok()) << made[1].status().c_str();
  std::vector<std::thread> threads;
  for (Made& one : made) {
    threads.emplace_back([&] {
      std::vector<float> data(5'000, 1.0f);
      const auto report = (*one)->all_reduce(std::span(data));
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      EXPECT_THAT(data, Each(2.0f));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Security, FileThatOthersCanReadIsAnError) {
  ::chmod(path_.c_str(), 0644);
  Options first = options(0);
  first.secret_file = path_;
  const auto made = Communicator::create(first);
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(made.status().c_str(), AllOf(HasSubstr(path_), HasSubstr("chmod 600")));
}

TEST_F(Security, PublicRendezvousNeedsASecret) {
  Options second = options(1);
  second.rendezvous = "9.9.9.9:4000";
  second.bind_address = "127.0.0.1";
  const auto made = Communicator::create(second);
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(made.status().c_str(), HasSubstr("leeway keygen"));
}

TEST_F(Security, PortIsTheOneAskedFor) {
  Options first = options(0);
  Options second = options(1);
  first.port = rendezvous::free_port();
  auto made = create(first, second);
  ASSERT_TRUE(made[0].ok()) << made[0].status().c_str();
  asio::io_context io;
  asio::ip::udp::socket other(io, asio::ip::udp::v4());
  std::error_code error;
  other.bind({asio::ip::address_v4::loopback(), first.port}, error);
  EXPECT_EQ(error, asio::error::address_in_use);
}

TEST_F(Security, PortThatIsTakenIsNamed) {
  asio::io_context io;
  const asio::ip::udp::socket other(io, {asio::ip::address_v4::loopback(), 0});
  Options first = options(0);
  first.port = other.local_endpoint().port();
  const auto made = Communicator::create(first);
  EXPECT_EQ(made.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(made.status().c_str(), HasSubstr("port " + std::to_string(first.port)));
}

}  // namespace
}  // namespace leeway
