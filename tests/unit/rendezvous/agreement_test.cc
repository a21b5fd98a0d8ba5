// Tests which ranks fit together, without a store. bootstrap_refusal_test.cc shows that the texts
// reach every rank.
#include "rendezvous/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/address.h"
#include "rendezvous/printable.h"
#include "rendezvous/transport_choice.h"
#include "unit/rendezvous/loopback_peer.h"

namespace leeway::rendezvous {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

asio::ip::address address(const char* text) {
  return asio::ip::make_address(text);
}

LocalConfiguration root_of(int size) {
  LocalConfiguration root;
  root.size = size;
  root.rendezvous = "node-a:4000";
  root.datagram_bytes = 8972;
  root.data_port = 7000;
  root.data_address = to_bytes(address("10.0.0.1"));
  root.process = 77;
  root.seed = 42;
  return root;
}

control::Hello hello_from(std::uint32_t rank, std::uint32_t size, const char* from) {
  control::Hello hello = valid_hello(rank, size);
  const auto bytes = to_bytes(address(from));
  hello.mutable_data()->set_address(bytes.data(), bytes.size());
  hello.mutable_data()->set_port(7000 + rank);
  return hello;
}

std::string member_text(const Group& group, std::size_t rank) {
  const auto parsed = address_from_bytes(group.datagrams.members.at(rank).address);
  return parsed ? parsed->to_string() : "not an address";
}

TEST(CheckInvitation, AcceptsAnotherRankOfTheSameSizeAndVersion) {
  LocalConfiguration local = root_of(4);
  local.rank = 3;
  const auto invitation = parse_invitation(value_of(invitation_of(root_of(4), 5)));
  ASSERT_TRUE(invitation.has_value());
  EXPECT_EQ(invitation->meeting(), 5u);
  EXPECT_TRUE(check_invitation(*invitation, local).ok());
}

TEST(CheckInvitation, ChecksTheVersionBeforeTheSizeAndNamesBothSides) {
  LocalConfiguration local = root_of(4);
  local.rank = 3;
  control::Invitation invitation = invitation_of(root_of(5), 5);
  EXPECT_THAT(check_invitation(invitation, local).c_str(),
              AllOf(HasSubstr("rank 3 at "), HasSubstr("expects 4 ranks, rank 0 expects 5")));
  invitation.set_protocol_version(wire::kVersion + 1u);
  invitation.set_library_version("9.8.7");
  EXPECT_THAT(check_invitation(invitation, local).c_str(),
              AllOf(HasSubstr("rank 3 at "), HasSubstr("protocol version"),
                    HasSubstr("rank 0 version " + std::to_string(wire::kVersion + 1u)),
                    HasSubstr("9.8.7")));
}

TEST(CheckHello, AcceptsARankThatFits) {
  EXPECT_TRUE(check_hello(valid_hello(3, 4), root_of(4), 3).ok());
}

TEST(CheckHello, TakesTheHelloThatIsMade) {
  LocalConfiguration local = root_of(4);
  local.rank = 3;
  const auto hello = parse_hello(value_of(hello_of(local, 9, std::chrono::seconds(60))));
  ASSERT_TRUE(hello.has_value());
  EXPECT_TRUE(check_hello(*hello, root_of(4), 3).ok());
  EXPECT_EQ(hello->patience_ms(), 60'000u);
  EXPECT_EQ(hello->attempt(), 9u);
  EXPECT_EQ(hello->process(), 77u);
}

TEST(CheckHello, ChecksTheVersionBeforeAnythingElse) {
  control::Hello hello = valid_hello(99, 7);
  hello.set_protocol_version(wire::kVersion + 1u);
  EXPECT_THAT(check_hello(hello, root_of(4), 3).c_str(),
              AllOf(HasSubstr("protocol version"), HasSubstr("node-99, process 7")));
}

TEST(CheckHello, ChecksTheWorldSizeBeforeTheRank) {
  EXPECT_THAT(check_hello(valid_hello(5, 8), root_of(4), 5).c_str(), HasSubstr("expects 8 ranks"));
}

TEST(CheckHello, TakesOnlyTheRankWhosePlaceItIs) {
  EXPECT_THAT(check_hello(valid_hello(2, 4), root_of(4), 3).c_str(),
              HasSubstr("says it is rank 2 where rank 3 is awaited"));
  EXPECT_THAT(check_hello(valid_hello(0xFFFFFFFF, 4), root_of(4), 3).c_str(),
              HasSubstr("says it is rank 4294967295"));
}

TEST(ClaimedTwice, NamesBothProcesses) {
  EXPECT_THAT(claimed_twice(3, "node-a, process 1", "node-b, process 2").c_str(),
              HasSubstr("two processes claim rank 3: the one at node-a, process 1 and the one at "
                        "node-b, process 2"));
}

TEST(CheckHello, ChecksWhichTransportIsAskedFor) {
  control::Hello hello = valid_hello(1, 4);
  hello.mutable_configuration()->set_transport(static_cast<std::uint32_t>(TransportKind::verbs));
  EXPECT_THAT(check_hello(hello, root_of(4), 1).c_str(), HasSubstr("transport verbs"));
}

TEST(CheckHello, KeepsEveryTextWithinAStatus) {
  control::Hello hello = valid_hello(1, 4);
  hello.mutable_configuration()->set_communicator_name(std::string(10'000, 'x'));
  LocalConfiguration root = root_of(4);
  root.name = std::string(10'000, 'y');
  const Status status = check_hello(hello, root, 1);
  EXPECT_THAT(status.c_str(), HasSubstr("names must be equal"));
}

TEST(MakeGroup, ListsAddressesAttemptsAndProcessesByRank) {
  const std::vector<control::Hello> others = {hello_from(1, 3, "10.0.0.2"),
                                              hello_from(2, 3, "10.0.0.3")};
  const auto group = make_group(root_of(3), others, 9);
  ASSERT_TRUE(group.ok()) << group.status().c_str();
  EXPECT_EQ(group->epoch, 9u);
  EXPECT_EQ(group->seed, 42u);
  EXPECT_EQ(member_text(*group, 0), "10.0.0.1");
  EXPECT_EQ(member_text(*group, 1), "10.0.0.2");
  EXPECT_EQ(member_text(*group, 2), "10.0.0.3");
  EXPECT_EQ(group->datagrams.members[2].port, 7002);
  EXPECT_THAT(group->attempts, ElementsAre(0, 1001, 1002));
  EXPECT_THAT(group->processes, ElementsAre(77, 2001, 2002));
  EXPECT_EQ(group->round_trip, Duration(0));
}

TEST(MakeGroup, TellsTheLongestRoundTripToRankZero) {
  LocalConfiguration local = root_of(4);
  std::vector<control::Hello> others;
  for (const auto round_trip : {30us, 50'200us, 0us}) {
    local.rank = static_cast<Rank>(others.size() + 1);
    others.push_back(hello_of(local, 9, 60s, round_trip));
  }
  EXPECT_EQ(make_group(root_of(4), others, 9)->round_trip, 50'200us);
}

TEST(CrossesSites, WhereARankIsFarOrHasAPublicAddress) {
  Group group = *make_group(root_of(2), std::vector{hello_from(1, 2, "10.0.0.2")}, 9);
  EXPECT_FALSE(crosses_sites(group));
  group.round_trip = 2ms;
  EXPECT_FALSE(crosses_sites(group));
  group.round_trip = 2ms + 1us;
  EXPECT_TRUE(crosses_sites(group));
  group.datagrams.kind = TransportKind::verbs;
  EXPECT_FALSE(crosses_sites(group));
  EXPECT_EQ(why_far(*make_group(root_of(2), std::vector{hello_from(1, 2, "8.8.8.8")}, 9)),
            "rank 1 has the public address 8.8.8.8");
}

TEST(SharesHost, WhereAllTellOneAddress) {
  const auto group = [](const char* third) {
    return *make_group(root_of(3),
                       std::vector{hello_from(1, 3, "10.0.0.1"), hello_from(2, 3, third)}, 9);
  };
  EXPECT_TRUE(shares_host(group("10.0.0.1")));
  EXPECT_FALSE(shares_host(group("10.0.0.2")));
  Group over_verbs = group("10.0.0.1");
  over_verbs.datagrams.kind = TransportKind::verbs;
  EXPECT_FALSE(shares_host(over_verbs));
}

TEST(MakeGroup, TakesTheSmallestDatagram) {
  std::vector<control::Hello> others = {hello_from(1, 3, "10.0.0.2"), hello_from(2, 3, "10.0.0.3")};
  others[0].mutable_configuration()->set_datagram_bytes(1200);
  EXPECT_EQ(make_group(root_of(3), others, 9)->datagrams.datagram_bytes, 1200u);
}

TEST(MakeGroup, RefusesAMixOfFamilies) {
  const std::vector<control::Hello> others = {hello_from(1, 3, "10.0.0.2"),
                                              hello_from(2, 3, "fd00::3")};
  const auto group = make_group(root_of(3), others, 9);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(group.status().c_str(),
              AllOf(HasSubstr("rank 2"), HasSubstr("fd00::3"), HasSubstr("LEEWAY_BIND")));
}

TEST(MakeGroup, LeadsOverWhatAllRanksOffer) {
  LocalConfiguration root = root_of(2);
  root.transport = TransportKind::automatic;
  root.offers = {{TransportKind::verbs, std::vector<std::byte>(20, std::byte{1}), 4096, 7, ""}};
  std::vector<control::Hello> others = {hello_from(1, 2, "10.0.0.2")};
  const Group without = *make_group(root, others, 9);
  EXPECT_EQ(without.datagrams.kind, TransportKind::udp);
  put_offers({{TransportKind::verbs, std::vector<std::byte>(21, std::byte{2}), 2048, 8, ""}},
             others[0]);
  const Group group = *make_group(root, others, 9);
  EXPECT_EQ(group.datagrams.kind, TransportKind::verbs);
  EXPECT_EQ(group.datagrams.datagram_bytes, 2048u);
  EXPECT_EQ(group.datagrams.members[0].address, root.offers[0].address);
  EXPECT_EQ(group.datagrams.members[1].address.size(), 21u);
}

MemoryPlace memory(std::uint8_t boot, std::uint32_t user, std::uint8_t token) {
  MemoryPlace place;
  place.boot.fill(std::byte{boot});
  place.user = user;
  place.token.fill(std::byte{token});
  return place;
}

// The table tells all ranks which of them may share memory (WIRE 7.17).
TEST(MakeGroup, TellsAllOfTheMemoryThatRanksMayShare) {
  LocalConfiguration root = root_of(3);
  root.memory = memory(1, 1000, 2);
  LocalConfiguration other = root_of(3);
  other.rank = 1;
  other.memory = memory(1, 1000, 3);
  std::vector<control::Hello> others = {hello_from(1, 3, "10.0.0.2"), hello_from(2, 3, "10.0.0.3")};
  *others[0].mutable_memory() = hello_of(other, 1, 1s).memory();
  const Group group = *make_group(root, others, 9);
  ASSERT_EQ(group.memories.size(), 3u);
  EXPECT_EQ(group.memories[0], root.memory);
  EXPECT_EQ(group.memories[1], other.memory);
  EXPECT_FALSE(group.memories[2].shares());
  EXPECT_EQ(group_of(welcome_of(group).group()).memories, group.memories);
}

TEST(MakeGroup, TellsOfNoMemoryWhereNobodySharesAny) {
  const std::vector<control::Hello> others = {hello_from(1, 2, "10.0.0.2")};
  EXPECT_TRUE(make_group(root_of(2), others, 9)->memories.empty());
}

TEST(MakeGroup, NamesAMulticastGroupOnlyWhenAskedForAndForMoreThanOneRank) {
  LocalConfiguration root = root_of(2);
  const std::vector<control::Hello> others = {hello_from(1, 2, "10.0.0.2")};
  EXPECT_FALSE(make_group(root, others, 9)->multicast.has_value());
  root.multicast = true;
  EXPECT_EQ(make_group(root, others, 9)->multicast->address, multicast_of(9, true).address);
  EXPECT_FALSE(make_group(root, {}, 9)->multicast.has_value());
}

TEST(WelcomeOf, CarriesTheGroupUnchanged) {
  const GroupTransport udp{
      TransportKind::udp,
      1400,
      {{to_bytes(address("10.0.0.1")), 1, 2}, {to_bytes(address("10.0.0.2")), 3, 4}}};
  const Group group{7,       1ull << 60, udp,     multicast_of(7, true),
                    {0, 11}, {21, 22},   nullptr, std::chrono::microseconds(20'137)};
  const Group back = group_of(welcome_of(group).group());
  EXPECT_EQ(back.epoch, group.epoch);
  EXPECT_EQ(back.seed, group.seed);
  EXPECT_EQ(back.datagrams.kind, TransportKind::udp);
  EXPECT_EQ(back.datagrams.datagram_bytes, 1400u);
  ASSERT_EQ(back.datagrams.members.size(), 2u);
  EXPECT_EQ(back.datagrams.members[1].address, udp.members[1].address);
  EXPECT_EQ(back.datagrams.members[1].port, 3);
  EXPECT_EQ(back.datagrams.members[1].receive_buffer_bytes, 4u);
  ASSERT_TRUE(back.multicast.has_value());
  EXPECT_EQ(back.multicast->address, group.multicast->address);
  EXPECT_EQ(back.multicast->port, group.multicast->port);
  EXPECT_EQ(back.attempts, group.attempts);
  EXPECT_EQ(back.processes, group.processes);
  EXPECT_EQ(back.round_trip, group.round_trip);
}

TEST(WelcomeOf, LeavesOutWhatTheGroupDoesNotHave) {
  const Group back =
      group_of(welcome_of({7, 1, {TransportKind::udp, 1400, {}}, {}, {}, {}, nullptr}).group());
  EXPECT_FALSE(back.multicast.has_value());
}

TEST(WelcomeOf, FitsTheMessageLimitWithTheMostRanks) {
  const GroupTransport::Member widest{std::vector<std::byte>(limits::kTransportAddressBytesMax),
                                      65535, UINT64_MAX};
  const GroupTransport longest{TransportKind::ucx, 9216,
                               std::vector<GroupTransport::Member>(limits::kPeersMax, widest)};
  const std::vector<std::uint64_t> numbers(limits::kPeersMax, UINT64_MAX);
  const Group group{UINT32_MAX, UINT64_MAX, longest, multicast_of(UINT32_MAX, false),
                    numbers,    numbers,    nullptr};
  EXPECT_LE(welcome_of(group).ByteSizeLong(), limits::kWelcomeBytesMax);
}

TEST(ListRanks, JoinsNeighbours) {
  EXPECT_EQ(list_ranks({3}), "3");
  EXPECT_EQ(list_ranks({3, 4}), "3, 4");
  EXPECT_EQ(list_ranks({3, 4, 5}), "3-5");
  EXPECT_EQ(list_ranks({1, 3, 4, 5, 9}), "1, 3-5, 9");
}

TEST(ListRanks, CutsALongList) {
  std::vector<Rank> odd;
  for (int rank = 1; rank < 101; rank += 2) odd.push_back(static_cast<Rank>(rank));
  EXPECT_EQ(list_ranks(odd), "1, 3, 5, 7, 9, 11, 13, 15 and 42 more");
}

}  // namespace
}  // namespace leeway::rendezvous
