#include "farewell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <future>

#include "unit/rendezvous/loopback_peer.h"

namespace leeway::tools {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr int kTerminated = 128 + SIGTERM;

Options rank_of_two(int rank, std::uint16_t port) {
  Options options;
  options.rank = rank;
  options.world_size = 2;
  options.rendezvous = rendezvous::rendezvous_at(port);
  options.transport = TransportKind::udp;
  options.peer_timeout = 60s;  // a message ends a wait here, and no time-out does
  options.log_level = "off";
  return options;
}

TEST(Farewell, NothingCameAndNothingIsSaid) {
  EXPECT_EQ(Farewell().exit_code(), 0);
}

TEST(Farewell, ASignalEndsTheMeeting) {
  Farewell farewell;
  auto joining = std::async(std::launch::async, [&] {
    return farewell.create(rank_of_two(1, rendezvous::free_port())).status();
  });
  std::raise(SIGTERM);
  EXPECT_EQ(joining.get().code(), StatusCode::kCancelled);
  EXPECT_EQ(farewell.exit_code(), kTerminated);
}

TEST(Farewell, OtherRanksHearAtOnceThatThisOneLeft) {
  const std::uint16_t port = rendezvous::free_port();
  Farewell farewell;
  auto other = std::async(std::launch::async, [&]() -> Status {
    auto communicator = Communicator::create(rank_of_two(0, port));
    if (!communicator.ok()) return communicator.status();
    return (*communicator)->barrier(no_deadline).status();
  });
  auto created = farewell.create(rank_of_two(1, port));
  ASSERT_TRUE(created.ok()) << created.status().c_str();
  std::raise(SIGTERM);
  const Status told = other.get();
  EXPECT_EQ(told.code(), StatusCode::kPeerLost);
  EXPECT_THAT(told.c_str(), HasSubstr("rank 1"));
  EXPECT_EQ((*created)->barrier(no_deadline).status().code(), StatusCode::kCancelled);
  EXPECT_EQ(farewell.exit_code(), kTerminated);
}

}  // namespace
}  // namespace leeway::tools
