#include "observe/operator_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace leeway::observe {
namespace {

using namespace std::chrono_literals;
using driving::PeerState;
using ::testing::AllOf;
using ::testing::HasSubstr;

class OperatorLogLines : public ::testing::Test {
 protected:
  OperatorLogLines() {
    driving::ChannelView& channel = snapshot_.channels.emplace_back();
    channel.name = "world";
    channel.epoch = 1;
    channel.peers.resize(2);
    for (Rank place : {0, 1}) {
      channel.peers[place].rank = place + 1;
      channel.peers[place].process = place;
    }
    snapshot_.at = {1'000'000'000};
  }
  driving::PeerView& peer() { return snapshot_.channels[0].peers[1]; }
  std::string look(Duration later = 100ms) {
    snapshot_.at += later;
    ::testing::internal::CaptureStderr();
    lines_.look(snapshot_);
    return ::testing::internal::GetCapturedStderr();
  }

  rendezvous::Log log_{rendezvous::LogLevel::info, 0};
  OperatorLog lines_{log_, {.injected_losses = false, .buffer_bytes = 8u << 20}};
  driving::Snapshot snapshot_;
};

TEST_F(OperatorLogLines, APeersWayFromSilenceToDeath) {
  peer().state = PeerState::alive;
  EXPECT_EQ(look(), "");
  peer().state = PeerState::suspect;
  EXPECT_THAT(look(), HasSubstr("\"world\": rank 2 is silent"));
  EXPECT_EQ(look(), "");
  peer().state = PeerState::alive;
  EXPECT_THAT(look(), HasSubstr("rank 2 is heard again"));
  peer().state = PeerState::dead;
  EXPECT_THAT(look(), HasSubstr("rank 2 is given up"));
}

// The process that dies is in three communicators: a group's, another that carries the group's
// calls by datagrams, and a subgroup's.
TEST_F(OperatorLogLines, AProcessThatDiesIsOneLineInAllCommunicators) {
  for (const char* const name : {"world/datagrams", "pair"}) {
    driving::ChannelView channel = snapshot_.channels[0];
    channel.name = name;
    ++channel.epoch;
    snapshot_.channels.push_back(channel);
  }
  const auto all = [&](PeerState state) {
    for (driving::ChannelView& channel : snapshot_.channels) channel.peers[1].state = state;
  };
  all(PeerState::alive);
  EXPECT_EQ(look(), "");
  peer().state = PeerState::dead;
  EXPECT_THAT(look(), HasSubstr("\"world\": rank 2 is given up"));
  all(PeerState::dead);
  EXPECT_EQ(look(), "");
  snapshot_.channels[2].peers[0].state = PeerState::dead;
  EXPECT_THAT(look(), HasSubstr("\"pair\": rank 1 is given up"));
}

TEST_F(OperatorLogLines, APeerWithoutAPathAndWhoRelays) {
  look();
  peer().relayed = true;
  peer().relay = 1;
  EXPECT_THAT(look(), HasSubstr("rank 0 and rank 2 have no path of their own: through rank 1"));
  EXPECT_EQ(look(), "");
  peer().relay = kNoRank;
  EXPECT_THAT(look(), HasSubstr("through a process of another communicator"));
  peer().relayed = false;
  EXPECT_THAT(look(), HasSubstr("rank 0 and rank 2 have a path of their own"));
  EXPECT_EQ(look(), "");
}

TEST_F(OperatorLogLines, CommunicatorsOfOneNameAreToldApart) {
  peer().state = PeerState::alive;
  snapshot_.channels.push_back(snapshot_.channels[0]);
  snapshot_.channels[1].epoch = 2;
  look();
  peer().state = PeerState::gone;  // only in the first channel
  EXPECT_THAT(look(), HasSubstr("rank 2 left"));
  EXPECT_EQ(look(), "");
}

TEST_F(OperatorLogLines, LossesAreJudgedOverTenSeconds) {
  look();
  peer().datagrams_sent = 10'000;
  peer().datagrams_lost = 3'000;
  EXPECT_EQ(look(5s), "");
  EXPECT_THAT(look(5s), HasSubstr("30 % of the last 10000 datagrams were lost"));
  peer().datagrams_sent = 20'000;
  EXPECT_EQ(look(10s), "");
}

TEST_F(OperatorLogLines, LossesThatTheNetworkIsKnownForAreNoOverload) {
  snapshot_.uplink = {.paced = true, .noise = 0.1};
  look();
  peer().datagrams_sent = 10'000;
  peer().datagrams_lost = 1'200;
  EXPECT_EQ(look(10s), "");
}

TEST_F(OperatorLogLines, DropsOfThisHostNameTheCommand) {
  look();
  snapshot_.wire.kernel_drops = 17;
  EXPECT_THAT(look(10s), HasSubstr("dropped 17 datagrams for want of receive buffer: sysctl -w "
                                   "net.core.rmem_max=8388608"));
}

TEST_F(OperatorLogLines, WhatNoMemberSealedIsToldByReason) {
  look();
  snapshot_.seal.refused[static_cast<std::size_t>(seal::Refusal::replayed)] = 5;
  EXPECT_THAT(look(10s), HasSubstr("0 forged or damaged, 5 replayed, 0 of unknown senders"));
}

TEST_F(OperatorLogLines, WhatTheSystemRefusesIsToldApartFromWhatAPeerDidNotRead) {
  look();
  snapshot_.wire.send_errors = 3;
  EXPECT_THAT(look(10s), HasSubstr("3 trains were lost before they left this host: a peer on it "
                                   "read nothing for 100 ms"));
  snapshot_.wire.send_errors = 5;
  snapshot_.refused_sends = {.to = 1, .count = 5, .error = ENETUNREACH};
  snapshot_.refused_sends.at = {.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 7},
                                .port = 4000};
  EXPECT_THAT(look(10s), AllOf(HasSubstr("refused to send 2 trains, the last to "),
                               HasSubstr("10.0.0.7:4000: Network is unreachable (errno 101)"),
                               HasSubstr("LEEWAY_BIND")));
  ::testing::internal::CaptureStderr();
  lines_.lost_segmentation();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("segmentation offload is off"));
}

TEST_F(OperatorLogLines, ARelayWithoutShareIsToldWithItsAddressAtOnceAndThenEachTenSeconds) {
  look();
  NetworkAddress address;
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 203, 0, 113, 1};
  address.port = 29501;
  snapshot_.relays.push_back(
      {1, address, {.sent = 1000, .refused = 630, .bytes_per_second = 1'250'000}});
  EXPECT_THAT(look(), HasSubstr("relay at 203.0.113.1:29501 (rank 2) refused 63 % of the last 1000 "
                                "datagrams by share: it passes on 10.0 Mb/s of ours"));
  snapshot_.relays[0].share.sent = 2000;
  snapshot_.relays[0].share.refused = 700;
  EXPECT_EQ(look(5s), "");
  EXPECT_THAT(look(5s), HasSubstr("refused 7 % of the last 1000 datagrams"));
  snapshot_.relays[0].share.sent = 9000;
  snapshot_.relays[0].share.refused = 705;
  EXPECT_EQ(look(10s), "");
}

TEST_F(OperatorLogLines, WhatRelaysRefusedIsNoOverloadOfTheLine) {
  look();
  snapshot_.relays.push_back({7, {}, {.sent = 10'000, .refused = 7'000, .bytes_per_second = 1}});
  peer().datagrams_sent = 10'000;
  peer().datagrams_lost = 7'100;
  EXPECT_THAT(look(10s), ::testing::Not(HasSubstr("lost on the way")));
  peer().datagrams_sent = 20'000;
  peer().datagrams_lost = 9'000;
  EXPECT_THAT(look(10s), HasSubstr("19 % of the last 10000 datagrams were lost on the way"));
}

}  // namespace
}  // namespace leeway::observe
