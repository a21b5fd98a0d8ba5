// Tests communicators with several lanes. Ranks are threads over UDP on loopback, each with sockets
// of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <thread>

#include "leeway/communicator.h"
#include "leeway/rendezvous.h"
#include "support/secret_line.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr int kLanesRanks = 3;
constexpr std::size_t kLarge = 800'003;  // elements: three slices of a MiB
using LanesGroup = std::array<std::unique_ptr<Communicator>, kLanesRanks>;
using Made = Result<std::unique_ptr<Communicator>>;

void on_all(const std::function<void(int rank)>& act) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kLanesRanks; ++rank) threads.emplace_back(act, rank);
  for (std::thread& thread : threads) thread.join();
}

float value(int rank, std::size_t i) {
  return static_cast<float>(rank + 1) * 0.1f + static_cast<float>(i % 1'013);
}

std::vector<float> input(int rank) {
  std::vector<float> data(kLarge);
  for (std::size_t i = 0; i < kLarge; ++i) data[i] = value(rank, i);
  return data;
}

bool all_are(const std::vector<float>& values, float value) {
  return std::all_of(values.begin(), values.end(), [value](float one) { return one == value; });
}

std::map<std::string, std::uint64_t> counters_of(const Communicator& communicator) {
  std::map<std::string, std::uint64_t> rows;
  for (const auto& [name, count] : communicator.counters()) rows[name] = count;
  return rows;
}

class Lanes : public ::testing::Test {
 protected:
  Options options(int lanes) const {
    Options options;
    options.store = store_;
    options.transport = TransportKind::udp;
    options.bind_address = "127.0.0.1";
    options.world_size = kLanesRanks;
    options.join_timeout = 20s;
    options.lanes = lanes;
    return options;
  }
  static Made join(Options options, int rank) {
    options.rank = rank;
    return Communicator::create(options);
  }
  void meet(const Options& options) {
    on_all([&](int rank) {
      auto made = join(options, rank);
      ASSERT_TRUE(made.ok()) << made.status().c_str();
      group_[static_cast<std::size_t>(rank)] = std::move(*made);
    });
  }
  Communicator& at(int rank) { return *group_[static_cast<std::size_t>(rank)]; }

  std::shared_ptr<Rendezvous> store_ = std::make_shared<InprocRendezvous>();
  LanesGroup group_;
};

// Floats must be summed in rank order wherever a tensor is cut (WIRE 7.19).
TEST_F(Lanes, ResultsAreTheBitsOfOneLane) {
  std::array<std::vector<float>, 2> results;
  for (const int lanes : {1, 3}) {
    meet(options(lanes));
    on_all([&](int rank) {
      std::vector<float> data = input(rank);
      const auto report = at(rank).all_reduce(std::span(data));
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      EXPECT_EQ(report->lanes, static_cast<std::uint32_t>(lanes));
      EXPECT_TRUE(report->complete);
      EXPECT_EQ(report->loss, 0.0);
      ASSERT_EQ(report->peers.size(), kLanesRanks - 1u);
      EXPECT_GT(report->times.total, Duration(0));
      if (rank == 1) results[lanes == 3] = data;
    });
    on_all([&](int rank) { group_[static_cast<std::size_t>(rank)].reset(); });
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(Lanes, EachCarriesItsSliceAndTheReportHasAll) {
  meet(options(3));
  on_all([&](int rank) {
    const auto before = counters_of(at(rank));
    std::vector<float> data = input(rank);
    const auto report = at(rank).all_reduce(std::span(data));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    const auto after = counters_of(at(rank));
    std::uint64_t sent = 0;
    for (const char* const name : {"data_sent", "lane1_data_sent", "lane2_data_sent"}) {
      const std::uint64_t by_lane = after.at(name) - before.at(name);
      EXPECT_GT(by_lane, 0u) << name;
      sent += by_lane;
    }
    std::uint64_t reported = 0;
    for (const PeerReport& peer : report->peers) reported += peer.sent;
    EXPECT_EQ(reported, sent);
    EXPECT_EQ(report->lanes, 3u);
    // Each of N = 3 ranks sends 2 (N - 1) / N = 4/3 of the tensor, and headers.
    EXPECT_GT(report->bytes_sent, 4 * kLarge * sizeof(float) / 3);
  });
}

TEST_F(Lanes, SmallCallsAndOtherKindsTakeLaneZero) {
  meet(options(3));
  on_all([&](int rank) {
    std::vector<float> few(1'000, 1.0f);
    auto report = at(rank).all_reduce(std::span(few));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, 1u);
    std::vector<float> block(kLarge / kLanesRanks);
    std::vector<float> whole(block.size() * kLanesRanks, 2.0f);
    report = at(rank).reduce_scatter(std::span(std::as_const(whole)), std::span(block));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, 1u);
    EXPECT_TRUE(all_are(block, 6.0f));
    const auto rows = counters_of(at(rank));
    EXPECT_EQ(rows.at("lane1_data_sent"), 0u);
    EXPECT_EQ(rows.at("lane2_data_sent"), 0u);
  });
}

TEST_F(Lanes, AllGatherAndBroadcastAreCutToo) {
  meet(options(3));
  on_all([&](int rank) {
    std::vector<float> block = input(rank);
    std::vector<float> all(kLarge * kLanesRanks);
    auto report = at(rank).all_gather(std::span(std::as_const(block)), std::span(all));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, 3u);
    for (int from = 0; from < kLanesRanks; ++from) {
      for (std::size_t i = 0; i < kLarge; ++i)
        ASSERT_EQ(all[static_cast<std::size_t>(from) * kLarge + i], value(from, i));
    }
    report = at(rank).broadcast(std::span(block), 2);
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, 3u);
    EXPECT_EQ(block, input(2));
  });
}

TEST_F(Lanes, LossyCallsReportTheLossOfAllLanes) {
  Options lossy = options(2);
  lossy.faults.loss = 0.1;
  meet(lossy);
  on_all([&](int rank) {
    std::vector<float> data(kLarge);
    for (std::size_t i = 0; i < kLarge; ++i)
      data[i] = static_cast<float>((i * 7919 + rank * 104'729) % 1'009) / 505.0f - 1.0f;
    CollectiveOptions call{.op = ReduceOp::avg, .delivery = best_effort(20s)};
    const auto report = at(rank).all_reduce(std::span(data), call);
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, 2u);
    EXPECT_TRUE(report->complete);
    EXPECT_GT(report->loss_first_pass, 0.05);
    EXPECT_LT(report->loss_first_pass, 0.15);
    EXPECT_GT(report->loss, 0.0);
    EXPECT_GT(report->variance_estimate, 0.0);
    const auto rows = counters_of(at(rank));
    EXPECT_GT(rows.at("injected_lost_data"), 0u);
    EXPECT_NE(rows.at("injected_lost_data"), rows.at("lane1_injected_lost_data"));
  });
}

TEST_F(Lanes, ManyCallsAreUnderWayAtOnce) {
  meet(options(2));
  on_all([&](int rank) {
    constexpr int kCalls = 20;
    std::vector<std::vector<float>> sums(kCalls);
    std::vector<Work> works;
    for (int i = 0; i < kCalls; ++i) {
      sums[static_cast<std::size_t>(i)].assign(i % 3 == 0 ? 500 : kLarge,
                                               static_cast<float>(rank + i));
      works.push_back(at(rank).all_reduce_async(std::span(sums[static_cast<std::size_t>(i)])));
    }
    std::atomic<int> called{0};
    for (Work& work : works) work.on_done([&] { ++called; });
    EXPECT_TRUE(works[Work::wait_any(works)].done());
    while (!works.back().test()) std::this_thread::yield();
    ASSERT_TRUE(Work::wait_all(works).ok());
    for (int i = 0; i < kCalls; ++i)
      EXPECT_TRUE(all_are(sums[static_cast<std::size_t>(i)], static_cast<float>(3 + 3 * i)));
    while (called != kCalls) std::this_thread::yield();
  });
}

TEST_F(Lanes, ACallbackMayStartTheNextCallAndMayNotWait) {
  meet(options(2));
  on_all([&](int rank) {
    std::vector<float> first(kLarge, 1.0f);
    std::vector<float> second(kLarge, 2.0f);
    std::atomic<bool> started{false};
    Work next;
    Work work = at(rank).all_reduce_async(std::span(first));
    work.on_done([&] {
      EXPECT_EQ(at(rank).all_reduce(std::span(second)).status().code(),
                StatusCode::kInvalidArgument);
      next = at(rank).all_reduce_async(std::span(second));
      started = true;
    });
    ASSERT_TRUE(work.wait().ok());
    while (!started) std::this_thread::yield();
    ASSERT_TRUE(next.wait().ok());
    EXPECT_TRUE(all_are(second, 6.0f));
  });
}

// A call that fails on every rank must leave all lanes with the same next number.
TEST_F(Lanes, AFailedSliceFailsTheCallByNameAndTheNextOneGoesOn) {
  meet(options(2));
  on_all([&](int rank) {
    std::vector<float> data(kLarge, 1.0f);
    const auto first = at(rank).all_reduce(std::span(data));
    ASSERT_TRUE(first.ok()) << first.status().c_str();
    CollectiveOptions hasty{.delivery = exact(Duration(1))};
    const auto failed = at(rank).all_reduce(std::span(data), hasty);
    EXPECT_EQ(failed.status().code(), StatusCode::kDeadlineExceeded);
    EXPECT_THAT(failed.status().c_str(), HasSubstr("deadline"));
    data.assign(kLarge, 1.0f);
    const auto report = at(rank).all_reduce(std::span(data));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, 2u);
    EXPECT_EQ(report->sequence, first->sequence + 2);
    EXPECT_TRUE(all_are(data, 3.0f));
  });
}

TEST_F(Lanes, WhatIsWrongIsRefusedBeforeAnyLaneBegins) {
  meet(options(2));
  on_all([&](int rank) {
    std::vector<float> data(kLarge, 1.0f);
    const auto first = at(rank).all_reduce(std::span(data));
    ASSERT_TRUE(first.ok()) << first.status().c_str();
    CollectiveOptions wrong{.weight = 2.0};  // invalid, because a sum takes no weight
    EXPECT_EQ(at(rank).all_reduce(std::span(data), wrong).status().code(),
              StatusCode::kInvalidArgument);
    const std::vector<double> weights(kLanesRanks, 1.0);
    CollectiveOptions late{.op = ReduceOp::avg, .delivery = best_effort(5s)};
    late.owner_weights = weights;
    EXPECT_EQ(at(rank).all_reduce(std::span(data), late).status().code(),
              StatusCode::kInvalidArgument);
    const auto report = at(rank).all_reduce(std::span(data));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->sequence, first->sequence + 3) << "refused calls count";
  });
}

TEST_F(Lanes, AbortEndsCallsOnAllOfThem) {
  meet(options(3));
  std::vector<float> data(kLarge, 1.0f);
  Work alone = at(0).all_reduce_async(std::span(data));  // the others do not call
  at(0).abort();
  EXPECT_EQ(alone.wait().status().code(), StatusCode::kCancelled);
  EXPECT_EQ(at(0).state(), StatusCode::kCancelled);
  EXPECT_EQ(at(0).all_reduce(std::span(data)).status().code(), StatusCode::kCancelled);
}

// A call may also be cancelled, if a peer on a busy machine ends first.
TEST_F(Lanes, OpenCallsEndWithTheCommunicator) {
  meet(options(2));
  on_all([&](int rank) {
    std::vector<float> data(kLarge, 1.0f);
    Work work = at(rank).all_reduce_async(std::span(data));
    group_[static_cast<std::size_t>(rank)].reset();
    EXPECT_TRUE(work.test());
    const auto report = work.wait();
    EXPECT_TRUE(report.ok() ? all_are(data, 3.0f)
                            : report.status().code() == StatusCode::kCancelled);
  });
}

TEST_F(Lanes, ACommunicatorMayEndInACallbackOfItsLastCall) {
  meet(options(2));
  std::array<std::vector<float>, kLanesRanks> data;
  std::array<Work, kLanesRanks> works;
  std::atomic<int> ended{0};
  for (auto& one : data) one.assign(kLarge, 1.0f);
  on_all([&](int rank) {
    const auto n = static_cast<std::size_t>(rank);
    works[n] = at(rank).all_reduce_async(std::span(data[n]));
    works[n].on_done([&, n] {
      group_[n].reset();
      ++ended;
    });
  });
  while (ended != kLanesRanks) std::this_thread::yield();
  EXPECT_EQ(group_[0], nullptr);
}

TEST_F(Lanes, PartsOfAGroupHaveTheLanesOfTheWhole) {
  meet(options(3));
  on_all([&](int rank) {
    auto part = at(rank).split(rank == 2 ? 1 : 0, rank);
    ASSERT_TRUE(part.ok()) << part.status().c_str();
    std::vector<float> data(kLarge, 1.0f);
    const auto report = (*part)->all_reduce(std::span(data));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, rank == 2 ? 1u : 3u);  // with one lane there is nothing to cut
    EXPECT_TRUE(all_are(data, rank == 2 ? 1.0f : 2.0f));
  });
  on_all([&](int rank) {
    if (rank == 1) return;
    const std::array<Rank, 1> excluded = {1};
    auto rest = at(rank).shrink(excluded);
    ASSERT_TRUE(rest.ok()) << rest.status().c_str();
    std::vector<float> data(kLarge, 1.0f);
    const auto report = (*rest)->all_reduce(std::span(data));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, 3u);
    EXPECT_TRUE(all_are(data, 2.0f));
  });
}

// Each lane must find out by itself that the rank is dead. Lossy calls go on without that rank.
TEST_F(Lanes, ADeadRankIsLeftOutOnEveryLane) {
  Options hasty = options(2);
  hasty.peer_timeout = 500ms;
  meet(hasty);
  at(2).abort();
  on_all([&](int rank) {
    if (rank == 2) return;
    std::vector<float> data(kLarge, 1.0f);
    EXPECT_FALSE(at(rank).all_reduce(std::span(data)).ok());
    CollectiveOptions lossy{
        .op = ReduceOp::avg, .delivery = best_effort(20s), .spread = Delivery::Kind::best_effort};
    data.assign(kLarge, static_cast<float>(rank));
    const auto report = at(rank).all_reduce(std::span(data), lossy);
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, 2u);
    EXPECT_TRUE(at(rank).peer_left());
  });
}

// Two groups of a process share its lanes' sockets. Each lane has keys of its own for a pair of
// processes.
TEST_F(Lanes, SealedGroupsShareThem) {
  Options sealed = options(2);
  sealed.secret = secret_digits('7');
  LanesGroup second;
  meet(sealed);
  Options other = sealed;
  other.communicator_name = "second";
  on_all([&](int rank) {
    auto made = join(other, rank);
    ASSERT_TRUE(made.ok()) << made.status().c_str();
    second[static_cast<std::size_t>(rank)] = std::move(*made);
  });
  const auto all_reduce = [](Communicator& one) {
    std::vector<float> data(kLarge, 1.0f);
    const auto report = one.all_reduce(std::span(data));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, 2u);
    EXPECT_TRUE(all_are(data, 3.0f));
  };
  on_all([&](int rank) { all_reduce(at(rank)); });
  // A lane's socket counts the bytes of all groups, so the second group also tells those of the
  // first.
  std::uint64_t bytes = 0;
  for (const auto& one : second) bytes += counters_of(*one).at("lane1_bytes_sent");
  EXPECT_GT(bytes, kLarge * sizeof(float));
  on_all([&](int rank) { all_reduce(*second[static_cast<std::size_t>(rank)]); });
  for (const auto& one : second) {
    EXPECT_GT(counters_of(*one).at("lane1_sealed"), 0u);
    EXPECT_EQ(counters_of(*one).at("lane1_refused_forged"), 0u);
  }
}

TEST_F(Lanes, NumbersThatDifferAreAnErrorByName) {
  on_all([&](int rank) {
    const auto made = join(options(rank == 1 ? 3 : 2), rank);
    ASSERT_EQ(made.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(made.status().c_str(), HasSubstr("rank 1 has LEEWAY_LANES=3, rank 0 2"));
  });
}

TEST_F(Lanes, WhatCannotHaveThemIsRefusedOrHasOne) {
  for (const int lanes : {0, -1, 9}) {
    Options wrong = options(lanes);
    EXPECT_EQ(join(wrong, 0).status().code(), StatusCode::kInvalidArgument);
  }
  Options multicast = options(2);
  multicast.multicast = true;
  EXPECT_THAT(join(multicast, 0).status().c_str(), HasSubstr("LEEWAY_MULTICAST"));
  Options port = options(4);
  port.port = 65'533;
  EXPECT_THAT(join(port, 0).status().c_str(), HasSubstr("65533"));
  const auto inproc = Communicator::create_inproc(2, options(4));
  ASSERT_TRUE(inproc.ok()) << inproc.status().c_str();
  EXPECT_EQ(inproc->front()->options().lanes, 1);
}

// Another socket has taken the second port that rank 0 wants, so rank 0 cannot make its lanes. The
// error on all ranks must say so.
TEST_F(Lanes, ARankWithoutASocketIsEverybodysErrorByName) {
  const int taken = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(taken, reinterpret_cast<const sockaddr*>(&address), length), 0);
  ASSERT_EQ(::getsockname(taken, reinterpret_cast<sockaddr*>(&address), &length), 0);
  on_all([&](int rank) {
    Options own = options(2);
    if (rank == 0) own.port = static_cast<std::uint16_t>(ntohs(address.sin_port) - 1);
    const auto made = join(own, rank);
    ASSERT_EQ(made.status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(made.status().c_str(),
                HasSubstr(rank == 0 ? "in use" : "rank 0 could not open its 1 further lanes"));
  });
  ::close(taken);
}

// Memory that connects all ranks is faster than further sockets, so no further lane is opened.
TEST_F(Lanes, RanksThatShareMemoryHaveOne) {
  Options shared = options(2);
  shared.transport = TransportKind::mixed;
  meet(shared);
  on_all([&](int rank) {
    if (at(rank).transport() != TransportKind::shm) GTEST_SKIP() << "no shared memory here";
    std::vector<float> data(kLarge, 1.0f);
    const auto report = at(rank).all_reduce(std::span(data));
    ASSERT_TRUE(report.ok()) << report.status().c_str();
    EXPECT_EQ(report->lanes, 1u);
    EXPECT_EQ(at(rank).options().lanes, 1);
  });
}

// All lanes share one line of 80 Mb/s, and 2 (N - 1) / N of 3.2 MB leave each of N = 3 ranks. So a
// call takes 0.43 s or more with any number of lanes.
TEST_F(Lanes, PacedOnesHaveOneRateTogether) {
  std::array<Duration, 2> times{};
  for (const int lanes : {1, 3}) {
    Options paced = options(lanes);
    paced.congestion = CongestionControl::fixed;
    paced.rate_bits_per_second = 80'000'000;
    meet(paced);
    on_all([&](int rank) {
      std::vector<float> data(kLarge, 1.0f);
      const auto report = at(rank).all_reduce(std::span(data));
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      EXPECT_EQ(report->lanes, static_cast<std::uint32_t>(lanes));
      EXPECT_TRUE(all_are(data, 3.0f));
      if (rank == 0) times[lanes == 3] = report->times.total;
    });
    on_all([&](int rank) { group_[static_cast<std::size_t>(rank)].reset(); });
  }
  EXPECT_GT(times[0], 420ms);
  EXPECT_GT(times[1], 420ms);
}

}  // namespace
}  // namespace leeway
