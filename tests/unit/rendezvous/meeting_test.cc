// Tests groups that do not meet at rank 0's own port, several groups at one place, and meeting
// again.
#include "rendezvous/meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio.hpp>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "rendezvous/store_table.h"
#include "support/process_threads.h"
#include "unit/rendezvous/loopback_ranks.h"
#include "unit/rendezvous/plain_store.h"

namespace leeway::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LocalConfiguration over(const std::shared_ptr<Rendezvous>& store, int rank, int size) {
  LocalConfiguration local = configuration(rank, size, 1);
  local.store = store;
  local.rendezvous = "";
  local.data_address = kLoopbackBytes;
  return local;
}

// Joins all ranks, each with the configuration that `of` returns.
template <typename Of>
std::vector<Joining> join_all(int size, const Of& of) {
  std::vector<Joining> joining;
  for (int rank = 0; rank < size; ++rank) joining.push_back(join(of(rank)));
  return joining;
}

void expect_group(std::vector<Joining>& joining) {
  std::vector<Group> groups;
  for (Joining& one : joining) {
    auto group = one.get();
    ASSERT_TRUE(group.ok()) << group.status().c_str();
    groups.push_back(std::move(*group));
    expect_equal(groups.back(), groups.front());
  }
  ASSERT_EQ(groups.front().processes.size(), groups.size());
  for (std::size_t rank = 0; rank < groups.size(); ++rank)
    EXPECT_EQ(groups.front().processes[rank], 900 + rank);
}

TEST(Meeting, OfEightRanksInAFolder) {
  std::string folder = (std::filesystem::temp_directory_path() / "leeway-meet-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  for (int round = 0; round < 3; ++round) {
    auto joining = join_all(
        8, [&](int rank) { return over(std::make_shared<FileRendezvous>(folder), rank, 8); });
    expect_group(joining);
  }
  const auto files = std::distance(std::filesystem::directory_iterator(folder), {});
  EXPECT_EQ(files, 4) << "an outcome of each meeting, and the name";
  std::filesystem::remove_all(folder);
}

TEST(Meeting, OfEightRanksInAStoreOfTheCallersAgainAndAgain) {
  const auto store = std::make_shared<PlainStore>();
  for (int round = 0; round < 3; ++round) {
    auto joining = join_all(8, [&](int rank) { return over(store, rank, 8); });
    expect_group(joining);
  }
}

// The store holds only the address of a dead rank 0, whose port now belongs to another program.
TEST(Meeting, IsNotHeldUpByWhatAnswersAtADeadRankZerosAddress) {
  asio::io_context context;
  asio::ip::tcp::acceptor stranger(context, {asio::ip::address_v4::loopback(), 0});
  const auto store = std::make_shared<PlainStore>();
  const auto at_port_zero = [&](int rank) {
    LocalConfiguration local = over(store, rank, 2);
    local.rendezvous = "127.0.0.1:0";
    return local;
  };
  const std::string dead = "127.0.0.1:" + std::to_string(stranger.local_endpoint().port());
  ASSERT_TRUE(
      store->put(MeetingKeys(over(store, 0, 2)).address(), std::as_bytes(std::span(dead))).ok());
  std::vector<Joining> joining(2);
  joining[1] = join(at_port_zero(1));
  asio::ip::tcp::socket caller = stranger.accept();
  asio::write(caller, asio::buffer("220 another.example ESMTP\r\n", 27));
  stranger.accept();  // it has read that, and tries again; later calls get no word at all
  joining[0] = join(at_port_zero(0));
  expect_group(joining);
}

// A store that one rank reaches more slowly than the others do.
class FarStore final : public Rendezvous {
 public:
  FarStore(std::shared_ptr<Rendezvous> store, Duration away)
      : store_(std::move(store)), away_(away) {}
  Status put(std::string_view key, ByteSpan value) override { return store_->put(key, value); }
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override {
    return store_->get(key, patience);
  }
  Duration round_trip() const override { return away_; }

 private:
  const std::shared_ptr<Rendezvous> store_;
  const Duration away_;
};

TEST(Meeting, TellsAllRanksTheLongestRoundTripToTheStore) {
  const auto store = std::make_shared<PlainStore>();
  auto joining = join_all(3, [&](int rank) {
    return over(std::make_shared<FarStore>(store, rank == 2 ? 5ms : 1ms), rank, 3);
  });
  for (Joining& one : joining) {
    const auto group = one.get();
    ASSERT_TRUE(group.ok()) << group.status().c_str();
    EXPECT_EQ(group->round_trip, 5ms);
    EXPECT_TRUE(crosses_sites(*group));
  }
}

TEST(Meeting, OfThreadsInTheMemoryOfAProcess) {
  const auto store = std::make_shared<InprocRendezvous>();
  for (int round = 0; round < 3; ++round) {
    auto joining = join_all(8, [&](int rank) { return over(store, rank, 8); });
    expect_group(joining);
  }
}

TEST(Meeting, OfManyRanksCostsRankZeroNoMoreThanAFewGetsOfEach) {
  constexpr int kRanks = 64;
  const auto store = std::make_shared<PlainStore>();
  auto joining = join_all(kRanks, [&](int rank) { return over(store, rank, kRanks); });
  expect_group(joining);
  EXPECT_LT(store->gets(), 40 * kRanks);
}

TEST(Meeting, AtAServerOfAProcessThatIsNoRank) {
  const auto server = *TcpRendezvous::serve("127.0.0.1:0");
  for (int round = 0; round < 3; ++round) {
    auto joining = join_all(
        4, [&](int rank) { return over(*TcpRendezvous::connect(server->address()), rank, 4); });
    expect_group(joining);
  }
  EXPECT_FALSE(server->get(MeetingKeys(over(server, 0, 4)).root(), 0s).ok());
}

TEST(Meeting, AtAServerOfAnotherRankThanZero) {
  const std::string address = rendezvous_at(free_port());
  // The server must outlive rank 2's joining, because others may still read there.
  const std::shared_ptr<TcpRendezvous> server = *TcpRendezvous::serve(address);
  auto joining = join_all(4, [&](int rank) {
    return over(rank == 2 ? server : *TcpRendezvous::connect(address), rank, 4);
  });
  expect_group(joining);
}

TEST(Meeting, OverTcpAtAPortThatTheStoreTells) {
  const auto store = std::make_shared<PlainStore>();
  for (int round = 0; round < 3; ++round) {
    auto joining = join_all(4, [&](int rank) {
      LocalConfiguration local = over(store, rank, 4);
      local.rendezvous = "127.0.0.1:0";
      return local;
    });
    expect_group(joining);
  }
  EXPECT_THAT(store->keys(), ElementsAre("leeway/0/world/address"));
}

TEST(Meeting, OfSixteenGroupsAtOnceAtOneAddress) {
  const std::uint16_t port = free_port();
  std::vector<std::vector<Joining>> groups;
  for (int group = 0; group < 16; ++group) {
    groups.push_back(join_all(4, [&](int rank) {
      LocalConfiguration local = configuration(rank, 4, port);
      local.name = "group " + std::to_string(group);
      return local;
    }));
  }
  for (auto& joining : groups) expect_group(joining);
}

TEST(Meeting, KeepsItsPlaceOpenForLaterGroupsAsLongAsAGroupHoldsIt) {
  const std::uint16_t port = free_port();
  Joining first = join(1, 2, port);
  auto group = *join_group(configuration(0, 2, port));
  EXPECT_TRUE(first.get().ok());
  ASSERT_NE(group.place, nullptr);
  const auto store = store_at(port);
  EXPECT_TRUE(store->put("key", {}).ok());
  Joining second = join(1, 2, port);
  EXPECT_EQ(join_group(configuration(0, 2, port))->place, group.place);
  EXPECT_TRUE(second.get().ok());
  group.place.reset();
  EXPECT_FALSE(store->get("key", 0s).ok());
  LoopbackListener now_free(port);
}

TEST(Meeting, LeavesNoThreadAndNoDescriptorBehind) {
  const auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  };
  const std::uint16_t port = free_port();
  const auto meet = [port] {
    Joining other = join(1, 2, port);
    EXPECT_TRUE(join_group(configuration(0, 2, port)).ok());
    EXPECT_TRUE(other.get().ok());
  };
  meet();
  const auto threads = testing::threads_now();
  const auto descriptors = count("/proc/self/fd");
  for (int round = 0; round < 30; ++round) meet();
  EXPECT_TRUE(testing::threads_fall_to(threads));
  EXPECT_EQ(count("/proc/self/fd"), descriptors);
}

// The program counts its attempts, so the keys of both attempts differ.
TEST(Meeting, OfALaterAttemptDoesNotSeeWhatAnEarlierOneLeft) {
  const auto store = std::make_shared<PlainStore>();
  LocalConfiguration dead = over(store, 0, 3);
  const MeetingKeys keys(dead);
  ASSERT_TRUE(store->put(keys.root(), value_of(invitation_of(dead, 7))).ok());
  ASSERT_TRUE(store->put(keys.hello(7, 1), value_of(valid_hello(1, 3))).ok());
  auto joining = join_all(3, [&](int rank) {
    LocalConfiguration local = over(store, rank, 3);
    local.restart_count = 1;
    return local;
  });
  expect_group(joining);
}

// Attempts are not counted here: as with torchrun, the second one meets in the store of the first.
TEST(Meeting, IgnoresTheInvitationOfADeadRankZeroOnceThereIsAnother) {
  const auto store = std::make_shared<PlainStore>();
  const LocalConfiguration dead = over(store, 0, 3);
  const MeetingKeys keys(dead);
  ASSERT_TRUE(store->put(keys.root(), value_of(invitation_of(dead, 7))).ok());
  std::vector<Joining> joining(3);
  joining[1] = join(over(store, 1, 3));
  joining[2] = join(over(store, 2, 3));
  for (const Rank rank : {1, 2}) ASSERT_TRUE(store->get(keys.hello(7, rank), 10s).ok());
  joining[0] = join(over(store, 0, 3));
  expect_group(joining);
}

TEST(Meeting, NamesBothProcessesOfOneRankInAStoreThatKnowsNobody) {
  const auto store = std::make_shared<PlainStore>();
  auto joining = join_all(3, [&](int rank) { return over(store, rank == 2 ? 1 : rank, 3); });
  std::string text_of_all;
  for (Joining& one : joining) {
    const auto group = one.get();
    ASSERT_FALSE(group.ok());
    EXPECT_EQ(group.status().code(), StatusCode::kMismatch);
    if (text_of_all.empty()) text_of_all = text(group);
    EXPECT_EQ(text(group), text_of_all);
  }
  EXPECT_THAT(text_of_all, HasSubstr("two processes claim rank 1: the one at " + this_place()));
}

TEST(Meeting, ListsMissingRanksToEveryoneOverAnyStore) {
  const auto store = std::make_shared<PlainStore>();
  std::vector<Joining> joining;
  for (const int rank : {0, 1, 3}) {
    LocalConfiguration local = over(store, rank, 5);
    local.join_timeout = rank == 3 ? 2500ms : 20s;  // the least patient decides
    joining.push_back(join(local));
  }
  const Stopwatch watch;
  const std::string reason = text(joining[0].get());
  EXPECT_LT(watch.elapsed(), 5s);
  EXPECT_THAT(reason, AllOf(HasSubstr("2 of 5 ranks never came to the rendezvous at the store"),
                            HasSubstr("missing ranks 2, 4")));
  EXPECT_EQ(text(joining[1].get()), reason);
  EXPECT_EQ(text(joining[2].get()), reason);
}

TEST(Meeting, TellsAMisfitToEveryoneOverAnyStore) {
  const auto store = std::make_shared<PlainStore>();
  auto joining = join_all(3, [&](int rank) {
    LocalConfiguration local = over(store, rank, 3);
    local.window_bytes = rank == 1 ? 777 : 0;
    return local;
  });
  for (Joining& one : joining) EXPECT_THAT(text(one.get()), HasSubstr("window of 777 bytes"));
}

TEST(Meeting, KeepsTheTimeThatARankHas) {
  const auto store = std::make_shared<PlainStore>();
  for (const auto patience : {50ms, 300ms}) {
    LocalConfiguration local = over(store, 1, 2);
    local.join_timeout = patience;
    const Stopwatch watch;
    const auto group = join_group(local);
    EXPECT_GE(watch.elapsed(), patience);
    EXPECT_LT(watch.elapsed(), patience + 200ms);
    EXPECT_THAT(text(group), AllOf(HasSubstr("rank 1 could not join"), HasSubstr("the store"),
                                   HasSubstr("rank 0 of communicator \"world\" has not come")));
  }
}

// A store that refuses every third of its first 30 calls.
class SickStore final : public Rendezvous {
 public:
  Status put(std::string_view key, ByteSpan value) override {
    return sick() ? Status::error(StatusCode::kUnavailable, "store away") : well_.put(key, value);
  }
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override {
    if (sick()) return Status::error(StatusCode::kUnavailable, "store away");
    return well_.get(key, patience);
  }

 private:
  // Returns true for every third of the first 30 calls. If it went on, every third call might
  // always be the same rank's, which could then never join.
  bool sick() {
    const int call = calls_++;
    return call < 30 && call % 3 == 0;
  }
  std::atomic<int> calls_{0};
  InprocRendezvous well_;
};

TEST(Meeting, GoesOnWhenTheStoreIsAwayForAWhile) {
  const auto store = std::make_shared<SickStore>();
  std::vector<Joining> joining;
  for (int rank = 1; rank < 4; ++rank) joining.push_back(join(over(store, rank, 4)));
  joining.push_back(join(over(store, 0, 4)));
  for (Joining& one : joining) {
    const auto group = one.get();
    EXPECT_TRUE(group.ok()) << group.status().c_str();
  }
}

TEST(Meeting, TurnsAStoresExceptionIntoAnError) {
  class Throwing final : public Rendezvous {
    Status put(std::string_view, ByteSpan) override { throw std::runtime_error("broken store"); }
    Result<std::vector<std::byte>> get(std::string_view, Duration) override {
      throw std::runtime_error("broken store");
    }
  };
  for (const int rank : {0, 1}) {
    const auto group = join_group(over(std::make_shared<Throwing>(), rank, 2));
    EXPECT_THAT(text(group), HasSubstr("broken store"));
  }
}

TEST(MeetingKeys, AreKeysWhateverTheName) {
  std::vector<std::string> roots;
  for (const std::string& name :
       {std::string(), std::string("a"), std::string("a/b"), std::string("a%2fb"),
        std::string(1000, 'x'), std::string(1001, 'x'), std::string("\0\n\xff", 3),
        std::string(200, '\xff')}) {
    LocalConfiguration local;
    local.name = name;
    local.restart_count = UINT64_MAX;
    const MeetingKeys keys(local);
    EXPECT_TRUE(is_key(keys.hello(UINT64_MAX, 1023))) << keys.hello(UINT64_MAX, 1023);
    EXPECT_TRUE(is_key(keys.outcome(1)) && is_key(keys.address()) && is_key(MeetingKeys::kLatest));
    for (const std::string& other : roots) EXPECT_NE(keys.root(), other);
    roots.push_back(keys.root());
  }
}

}  // namespace
}  // namespace leeway::rendezvous
