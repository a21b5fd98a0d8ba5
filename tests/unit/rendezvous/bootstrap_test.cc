// Tests ranks that meet over loopback connections, as threads: what they must survive, and what
// they must say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rendezvous/meeting.h"
#include "unit/rendezvous/loopback_ranks.h"
#include "unit/rendezvous/plain_store.h"

namespace leeway::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// ---- meeting ----

TEST(JoinGroup, GivesEveryRankTheSameTable) {
  const std::uint16_t port = free_port();
  std::vector<Joining> joining;
  for (int rank = 0; rank < 4; ++rank) {
    LocalConfiguration local = configuration(rank, 4, port);
    local.datagram_bytes = rank == 2 ? 1300 : 1400;
    local.seed = 100u + static_cast<unsigned>(rank);
    joining.push_back(join(local));
  }
  std::vector<Group> groups;
  for (Joining& one : joining) {
    const auto result = one.get();
    ASSERT_TRUE(result.ok()) << result.status().c_str();
    groups.push_back(*result);
  }
  for (const Group& group : groups) expect_equal(group, groups[0]);
  const Group& group = groups[0];
  EXPECT_NE(group.epoch, 0u);
  EXPECT_EQ(group.seed, 100u);
  EXPECT_GT(group.round_trip, Duration(0)) << "TCP measured it";
  EXPECT_EQ(group.datagrams.datagram_bytes, 1300u);
  ASSERT_EQ(group.datagrams.members.size(), 4u);
  for (unsigned rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(group.datagrams.members[rank].address, kLoopbackBytes);
    EXPECT_EQ(group.datagrams.members[rank].port, 5000 + rank);
    EXPECT_EQ(group.datagrams.members[rank].receive_buffer_bytes, 1'000'000u + rank);
  }
}

TEST(JoinGroup, NeedsNoNetworkForOneRank) {
  LocalConfiguration local = configuration(0, 1, 1);
  local.rendezvous = "";
  const auto group = join_group(local);
  ASSERT_TRUE(group.ok()) << group.status().c_str();
  EXPECT_NE(group->epoch, 0u);
  EXPECT_EQ(group->datagrams.members.size(), 1u);
}

TEST(JoinGroup, MeetsAgainAtTheSamePortUnderAnotherEpoch) {
  const std::uint16_t port = free_port();
  std::vector<std::uint32_t> epochs;
  for (int round = 0; round < 3; ++round) {
    Joining other = join(1, 2, port);
    const auto group = join_group(configuration(0, 2, port));
    ASSERT_TRUE(group.ok()) << group.status().c_str();
    ASSERT_TRUE(other.get().ok());
    epochs.push_back(group->epoch);
  }
  EXPECT_FALSE(epochs[0] == epochs[1] && epochs[1] == epochs[2]);
}

TEST(JoinGroup, UsesADataAddressThatIsGiven) {
  const std::uint16_t port = free_port();
  LocalConfiguration local = configuration(1, 2, port);
  local.data_address = {std::byte{10}, std::byte{1}, std::byte{2}, std::byte{3}};
  Joining other = join(local);
  const auto group = join_group(configuration(0, 2, port));
  ASSERT_TRUE(group.ok()) << group.status().c_str();
  EXPECT_EQ(group->datagrams.members[1].address, local.data_address);
  EXPECT_TRUE(other.get().ok());
}

TEST(JoinGroup, FindsRankZeroByName) {
  const std::uint16_t port = free_port();
  LocalConfiguration root = configuration(0, 2, port);
  LocalConfiguration local = configuration(1, 2, port);
  root.rendezvous = local.rendezvous = "localhost:" + std::to_string(port);
  Joining other = join(local);
  const auto group = join_group(root);
  EXPECT_TRUE(group.ok()) << group.status().c_str();
  EXPECT_TRUE(other.get().ok());
}

TEST(JoinGroup, MeetsOverIPv6) {
  asio::io_context io;
  std::error_code no_v6;
  tcp::acceptor probe(io);
  probe.open(tcp::v6(), no_v6);
  if (!no_v6) probe.bind({asio::ip::address_v6::loopback(), 0}, no_v6);
  if (no_v6) GTEST_SKIP() << "this machine has no IPv6 loopback: " << no_v6.message();

  const std::uint16_t port = free_port();
  LocalConfiguration root = configuration(0, 2, port);
  LocalConfiguration local = configuration(1, 2, port);
  root.rendezvous = local.rendezvous = "[::1]:" + std::to_string(port);
  Joining other = join(local);
  const auto group = join_group(root);
  ASSERT_TRUE(group.ok()) << group.status().c_str();
  EXPECT_TRUE(other.get().ok());
  for (const GroupTransport::Member& member : group->datagrams.members) {
    ASSERT_EQ(member.address.size(), 16u);
    EXPECT_EQ(member.address.back(), std::byte{1});
  }
}

TEST(JoinGroup, WaitsForARankZeroThatComesLate) {
  const std::uint16_t port = free_port();
  LoopbackListener early(port);
  Joining other = join(1, 2, port);
  early.accept().hang_up();  // rank 1 has tried at least once and found nobody
  early.close();
  const auto group = join_group(configuration(0, 2, port));
  EXPECT_TRUE(group.ok()) << group.status().c_str();
  EXPECT_TRUE(other.get().ok());
}

std::uint64_t meeting_at(Rendezvous& store, const LocalConfiguration& local) {
  const auto invitation = parse_invitation(*store.get(MeetingKeys(local).root(), 10s));
  return invitation->meeting();
}

TEST(JoinGroup, LetsARankThatHungUpComeAgain) {
  const std::uint16_t port = free_port();
  Joining root = join(0, 3, port);
  {
    const auto store = store_at(port);
    const std::uint64_t meeting = meeting_at(*store, configuration(1, 3, port));
    const std::string key = MeetingKeys(configuration(1, 3, port)).hello(meeting, 1);
    ASSERT_TRUE(
        store->put_briefly(key, value_of(valid_hello(1, 3)), {.with_this_process = true}).ok());
  }
  Joining second = join(2, 3, port);
  Joining first = join(1, 3, port);
  const auto group = root.get();
  ASSERT_TRUE(group.ok()) << group.status().c_str();
  EXPECT_EQ(group->datagrams.members[1].port, 5001);
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
}

TEST(JoinGroup, MissesARankThatDiedAfterItsHello) {
  const std::uint16_t port = free_port();
  LocalConfiguration local = configuration(0, 3, port);
  local.join_timeout = 600ms;
  Joining root = join(local);
  {
    const auto store = store_at(port);
    const std::string key = MeetingKeys(local).hello(meeting_at(*store, local), 1);
    ASSERT_TRUE(
        store->put_briefly(key, value_of(valid_hello(1, 3)), {.with_this_process = true}).ok());
  }
  EXPECT_THAT(text(root.get()), HasSubstr("missing ranks 1, 2"));
}

// ---- a wrong configuration of one's own ----

TEST(JoinGroup, RefusesARankBeyondTheSize) {
  const auto group = join_group(configuration(4, 4, 1));
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(text(group), HasSubstr("rank 4 is impossible in a group of 4"));
}

TEST(JoinGroup, RefusesASizeBeyondTheLimit) {
  EXPECT_THAT(text(join_group(configuration(0, 1025, 1))), HasSubstr("1025 ranks"));
  EXPECT_THAT(text(join_group(configuration(0, 0, 1))), HasSubstr("0 ranks"));
}

TEST(JoinGroup, RefusesADatagramSizeOutsideTheLimits) {
  for (const std::uint32_t bytes : {0u, 511u, 32769u}) {
    LocalConfiguration local = configuration(0, 2, 1);
    local.datagram_bytes = bytes;
    const auto group = join_group(local);
    ASSERT_FALSE(group.ok()) << bytes;
    EXPECT_EQ(group.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(text(group), HasSubstr(std::to_string(bytes) + " bytes"));
  }
}

TEST(JoinGroup, SaysHowToGiveAnAddressWhereThereIsNone) {
  LocalConfiguration local = configuration(1, 2, 1);
  local.rendezvous = "";
  const auto group = join_group(local);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(text(group), HasSubstr("set LEEWAY_RENDEZVOUS=host:port"));
}

TEST(JoinGroup, RefusesAnAddressThatIsNoAddress) {
  for (const int rank : {0, 1}) {
    LocalConfiguration local = configuration(rank, 2, 1);
    local.rendezvous = "nowhere";
    const auto group = join_group(local);
    ASSERT_FALSE(group.ok());
    EXPECT_EQ(group.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(text(group), HasSubstr("\"nowhere\""));
  }
}

TEST(JoinGroup, NamesAHostThatDoesNotResolve) {
  for (const int rank : {0, 1}) {
    LocalConfiguration local = configuration(rank, 2, 1);
    local.rendezvous = "no-such-host.invalid:4000";
    local.join_timeout = 50ms;
    const auto group = join_group(local);
    ASSERT_FALSE(group.ok());
    EXPECT_THAT(text(group), HasSubstr("host \"no-such-host.invalid\" does not resolve"));
  }
}

// ---- rank 0 is not where it should be ----

TEST(JoinGroup, NamesThePortThatIsInUse) {
  const std::uint16_t port = free_port();
  LoopbackListener other_program(port);
  const auto group = join_group(configuration(0, 2, port));
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(text(group), AllOf(HasSubstr("port " + std::to_string(port) + " is in use"),
                                 HasSubstr("LEEWAY_RENDEZVOUS"), HasSubstr("ss -ltnp")));
}

TEST(JoinGroup, SaysThatRankZeroRunsOnTheWrongMachine) {
  LocalConfiguration local = configuration(0, 2, 1);
  local.rendezvous = "203.0.113.1:4000";  // reserved for documentation: nobody's address
  const auto group = join_group(local);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(text(group),
              AllOf(HasSubstr("203.0.113.1:4000"), HasSubstr("not an address of this machine")));
}

TEST(JoinGroup, NamesAddressAndTimeWhenRankZeroIsAbsent) {
  const std::uint16_t port = free_port();
  LocalConfiguration local = configuration(1, 2, port);
  local.join_timeout = 1s;
  const Stopwatch watch;
  const auto group = join_group(local);
  EXPECT_GE(watch.elapsed(), 50ms);  // it kept trying
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(text(group), AllOf(HasSubstr("rank 1"), HasSubstr(rendezvous_at(port)),
                                 HasSubstr("within 1.0 s"), HasSubstr("refused")));
}

TEST(JoinGroup, RecognisesAnotherProgramOnThePortAtOnce) {
  for (const std::string& answer :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string("hello"),
        std::string("LWRS\0\2", 6), greeting() + std::string(16, '\xff')}) {
    const std::uint16_t port = free_port();
    LoopbackListener other_program(port);
    Joining joining = join(1, 2, port);
    LoopbackPeer peer = other_program.accept();
    peer.say(answer);
    const auto group = joining.get();
    ASSERT_FALSE(group.ok());
    EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(text(group),
                AllOf(HasSubstr(rendezvous_at(port)), HasSubstr("not a Leeway rank 0")));
  }
}

Group pair_group(std::uint64_t attempt) {
  const GroupTransport udp{
      TransportKind::udp, 1400, {{kLoopbackBytes, 5000, 1}, {kLoopbackBytes, 5001, 1}}};
  return {7, 1, udp, {}, {0, attempt}, {1, 2}, nullptr};
}

// A rank 0 that gives rank 1's Hello the answer that a test wants.
class OddRankZero {
 public:
  explicit OddRankZero(Rendezvous& store) : store_(store) {
    EXPECT_TRUE(store_.put(keys_.root(), value_of(invitation_of(root_, kMeeting))).ok());
  }
  control::Hello hear() { return *parse_hello(*store_.get(keys_.hello(kMeeting, 1), 10s)); }
  void tell(ByteSpan value) { EXPECT_TRUE(store_.put(keys_.outcome(kMeeting), value).ok()); }

 private:
  static constexpr std::uint64_t kMeeting = 99;
  const LocalConfiguration root_ = configuration(0, 2, 1);
  const MeetingKeys keys_{root_};
  Rendezvous& store_;
};

Joining join_over(const std::shared_ptr<Rendezvous>& store, int rank, int size) {
  LocalConfiguration local = configuration(rank, size, 1);
  local.store = store;
  return join(local);
}

TEST(JoinGroup, RefusesATableThatDoesNotFit) {
  const Group good = pair_group(1);
  std::vector<Group> bad(6, good);
  bad[0].epoch = 0;
  bad[1].datagrams.members.pop_back();
  bad[2].datagrams.members[1].address.pop_back();
  bad[3].datagrams.members[0].port = 0;
  bad[4].datagrams.datagram_bytes = 100'000;
  bad[5].attempts.pop_back();
  for (const Group& group : bad) {
    const auto store = std::make_shared<InprocRendezvous>();
    OddRankZero impostor(*store);
    Joining joining = join_over(store, 1, 2);
    (void)impostor.hear();
    impostor.tell(value_of(welcome_of(group)));
    EXPECT_EQ(joining.get().status().code(), StatusCode::kMismatch);
  }
}

TEST(JoinGroup, RefusesWhatIsNoMessageOfOurs) {
  const auto store = std::make_shared<InprocRendezvous>();
  const std::string junk = "junk";
  const MeetingKeys keys(configuration(1, 2, 1));
  ASSERT_TRUE(store->put(keys.root(), std::as_bytes(std::span(junk))).ok());
  EXPECT_THAT(text(join_over(store, 1, 2).get()), HasSubstr("something else than Leeway's"));
  OddRankZero impostor(*store);
  Joining joining = join_over(store, 1, 2);
  (void)impostor.hear();
  impostor.tell(std::as_bytes(std::span(junk)));
  EXPECT_EQ(joining.get().status().code(), StatusCode::kMismatch);
}

TEST(JoinGroup, TakesOnlyATableThatNamesItsOwnCall) {
  const auto store = std::make_shared<PlainStore>();
  Joining joining;
  {
    OddRankZero earlier(*store);
    earlier.tell(value_of(welcome_of(pair_group(1))));  // as an earlier run left it
    joining = join_over(store, 1, 2);
    (void)earlier.hear();
  }
  const auto root = join_over(store, 0, 2).get();
  ASSERT_TRUE(root.ok()) << root.status().c_str();
  const auto group = joining.get();
  ASSERT_TRUE(group.ok()) << group.status().c_str();
  EXPECT_EQ(group->epoch, root->epoch);
}

TEST(JoinGroup, TriesAgainAfterATruncatedAnswer) {
  const std::uint16_t port = free_port();
  LoopbackListener dying(port);
  Joining joining = join(1, 2, port);
  LoopbackPeer first = dying.accept();
  first.say(greeting() + std::string(10, '\0'));
  first.hang_up();
  dying.accept().hang_up();
  dying.close();
  const auto group = join_group(configuration(0, 2, port));
  ASSERT_TRUE(group.ok()) << group.status().c_str();
  EXPECT_TRUE(joining.get().ok());
}

TEST(JoinGroup, GivesUpOnARankZeroThatNeverAnswers) {
  const std::uint16_t port = free_port();
  LoopbackListener silent(port);
  LocalConfiguration local = configuration(1, 2, port);
  local.join_timeout = 100ms;
  const auto group = join_group(local);
  ASSERT_FALSE(group.ok());
  EXPECT_EQ(group.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(text(group), HasSubstr("no answer"));
}

// ---- strangers ----

TEST(JoinGroup, HangsUpOnStrangersAndMeetsAllTheSame) {
  const std::uint16_t port = free_port();
  Joining root = join(0, 2, port);
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(8, '\xff'),
        std::string("LWRS\0\2\0\0", 8), greeting() + std::string(16, '\0'),
        greeting() + std::string(16, '\xff'),
        greeting() + request_of(StoreOperation::look, "not a key"),
        greeting() + request_of(StoreOperation::look, ""),
        greeting() + request_of(StoreOperation::look, std::string(241, 'k')),
        greeting() + request_of(StoreOperation::look, "key", "value")}) {
    LoopbackPeer stranger(port, bytes);
    EXPECT_TRUE(stranger.hangs_up());
  }
  Joining other = join(1, 2, port);
  EXPECT_TRUE(root.get().ok());
  EXPECT_TRUE(other.get().ok());
}

TEST(JoinGroup, SurvivesATruncatedRequest) {
  const std::uint16_t port = free_port();
  Joining root = join(0, 2, port);
  const std::string whole = greeting() + request_of(StoreOperation::put, "key", "value");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    LoopbackPeer(port, whole.substr(0, bytes)).hang_up();
  }
  Joining other = join(1, 2, port);
  EXPECT_TRUE(root.get().ok());
  EXPECT_TRUE(other.get().ok());
}

TEST(JoinGroup, RefusesAHelloThatIsNone) {
  const std::uint16_t port = free_port();
  Joining root = join(0, 2, port);
  const auto store = store_at(port);
  const LocalConfiguration local = configuration(1, 2, port);
  const std::string junk = "junk";
  ASSERT_TRUE(store
                  ->put(MeetingKeys(local).hello(meeting_at(*store, local), 1),
                        std::as_bytes(std::span(junk)))
                  .ok());
  const auto group = root.get();
  EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(text(group), HasSubstr("what rank 1 put"));
}

TEST(JoinGroup, MeetsWhileStrangersKeepSilentOrStopHalfway) {
  const std::uint16_t port = free_port();
  Joining root = join(0, 2, port);
  LoopbackPeer silent(port);
  LoopbackPeer halfway(port, greeting() + std::string(1, '\1'));
  Joining other = join(1, 2, port);
  EXPECT_TRUE(root.get().ok());
  EXPECT_TRUE(other.get().ok());
}

TEST(JoinGroup, HangsUpOnAStrangerThatKeepsSilentTooLong) {
  const std::uint16_t port = free_port();
  RendezvousLimits limits;
  limits.hello_timeout = 30ms;
  Joining root = join(configuration(0, 2, port), limits);
  LoopbackPeer silent(port);
  EXPECT_TRUE(silent.hangs_up());
  Joining other = join(1, 2, port);
  EXPECT_TRUE(root.get().ok());
  EXPECT_TRUE(other.get().ok());
}

TEST(JoinGroup, ClosesSomeOfTooManySilentStrangers) {
  const std::uint16_t port = free_port();
  RendezvousLimits limits;
  limits.half_open_max = 2;
  limits.hello_timeout = 60s;
  Joining root = join(configuration(0, 2, port), limits);
  const LoopbackPeer one(port);
  const LoopbackPeer two(port);
  const LoopbackPeer three(port);
  Joining other = join(1, 2, port);
  EXPECT_TRUE(root.get().ok());
  EXPECT_TRUE(other.get().ok());
}

}  // namespace
}  // namespace leeway::rendezvous
