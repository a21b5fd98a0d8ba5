// Tests all-reduces of tensors that have fewer datagrams than the group has ranks, and barriers of
// ranks on one host (WIRE 2.9): which ranks are owners, how many datagrams are sent, and what
// happens if packets, owners or other ranks are lost.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "base/limits.h"
#include "support/datagram_view.h"
#include "support/float_all_reduce.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;

constexpr int kOwners = 4;
constexpr std::size_t kOneDatagram = 300;  // elements; a datagram of 1472 bytes holds 352

// Returns the number of packets in the rank's own shard.
std::uint64_t packets_owned(const CollectiveReport& report) {
  std::uint64_t packets = 0;
  for (const std::uint64_t with_as_many : report.contributors.histogram) packets += with_as_many;
  return packets;
}

protocol::EndpointCounters total(EngineGroup& group) {
  protocol::EndpointCounters sum;
  for (Rank rank = 0; rank < group.size(); ++rank) {
    const protocol::EndpointCounters& one = group.engine(rank).endpoint().counters();
    sum.data_sent += one.data_sent;
    sum.reports_sent += one.reports_sent;
    sum.ends_sent += one.ends_sent;
    sum.probes_sent += one.probes_sent;
  }
  return sum;
}

TEST(FewOwners, OneDatagramHasOneOwnerAndEveryRankTakesATurn) {
  EngineGroup group(GroupOptions{.size = kOwners});
  for (Rank owner = 0; owner < 2 * kOwners; ++owner) {
    FloatAllReduce call(kOwners, kOneDatagram);
    call.submit_all(group);
    ASSERT_TRUE(call.finish(group));
    for (Rank rank = 0; rank < kOwners; ++rank) {
      EXPECT_EQ(call.report(rank).owners, 1u);
      EXPECT_EQ(packets_owned(call.report(rank)), rank == owner % kOwners ? 1u : 0u);
    }
  }
}

TEST(FewOwners, ThreeDatagramsHaveThreeOwners) {
  EngineGroup group(GroupOptions{.size = kOwners});
  for (Rank bystander : {3, 2, 1, 0}) {
    FloatAllReduce call(kOwners, 900);
    call.submit_all(group);
    ASSERT_TRUE(call.finish(group));
    for (Rank rank = 0; rank < kOwners; ++rank) {
      EXPECT_EQ(call.report(rank).owners, 3u);
      EXPECT_EQ(packets_owned(call.report(rank)) == 0, rank == bystander);
    }
  }
}

TEST(FewOwners, LongTensorsHaveAll) {
  EngineGroup group(GroupOptions{.size = kOwners});
  FloatAllReduce call(kOwners, kOwners * 352);
  call.submit_all(group);
  ASSERT_TRUE(call.finish(group));
  for (Rank rank = 0; rank < kOwners; ++rank) {
    EXPECT_EQ(call.report(rank).owners, static_cast<std::uint32_t>(kOwners));
    EXPECT_GT(packets_owned(call.report(rank)), 0u);
  }
}

// No call needs a report, because eager packets need not wait at the ready gate (WIRE 3.3), and
// packets of later calls confirm those of earlier ones.
TEST(FewOwners, ACallOfOneDatagramIsAMessageToItsOwnerAndOneBackForEveryOther) {
  EngineGroup group(GroupOptions{.size = kOwners});
  constexpr std::uint64_t kCalls = 20;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    FloatAllReduce call(kOwners, kOneDatagram);
    call.submit_all(group);
    ASSERT_TRUE(call.finish(group));
  }
  const protocol::EndpointCounters sent = total(group);
  EXPECT_EQ(sent.data_sent, kCalls * 2 * (kOwners - 1));
  EXPECT_EQ(sent.reports_sent + sent.ends_sent + sent.probes_sent, 0u);
  EXPECT_TRUE(group.settle());
}

class FewOwnersUnderLoss
    : public ::testing::TestWithParam<std::tuple<Estimator, Delivery::Kind, double>> {};

// Each rank is the owner in some call. Exact calls give the sum, and each call ends alike on all
// ranks.
TEST_P(FewOwnersUnderLoss, AllRanksAgree) {
  const Estimator estimator = std::get<Estimator>(GetParam());
  const Delivery::Kind delivery = std::get<Delivery::Kind>(GetParam());
  GroupOptions options{.size = kOwners};
  options.faults = {.loss = 0.3, .burst = std::get<double>(GetParam()), .seed = 3};
  EngineGroup group(options);
  for (const std::size_t count : {std::size_t{1}, kOneDatagram, std::size_t{500}}) {
    for (int turn = 0; turn < 2 * kOwners; ++turn) {
      std::vector<std::vector<float>> data;
      for (int rank = 0; rank < kOwners; ++rank) data.emplace_back(count, rank + 1.0f);
      const auto requests = group.submit_all([&](Rank rank) {
        OperationSpec spec{.kind = OperationKind::all_reduce,
                           .input = std::span(data[rank]),
                           .output = std::span(data[rank])};
        spec.options.delivery = {.kind = delivery, .loss_max = 0.1, .deadline = 20s};
        spec.options.estimator = estimator;
        return spec;
      });
      ASSERT_TRUE(group.run(requests));
      for (Rank rank = 0; rank < kOwners; ++rank) {
        ASSERT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.text();
        EXPECT_TRUE(requests[rank]->report.complete);
        EXPECT_FALSE(requests[rank]->report.deadline_cut);
        EXPECT_EQ(data[rank], data[0]) << "turn " << turn;
      }
      if (delivery == Delivery::Kind::exact) {
        EXPECT_EQ(data[0], std::vector<float>(count, 10.0f));
      }
    }
  }
  EXPECT_TRUE(group.settle());
}

INSTANTIATE_TEST_SUITE_P(
    All, FewOwnersUnderLoss,
    ::testing::Combine(::testing::Values(Estimator::zero_fill, Estimator::ratio,
                                         Estimator::symmetric_ratio, Estimator::stratified,
                                         Estimator::horvitz_thompson, Estimator::augmented),
                       ::testing::Values(Delivery::Kind::exact, Delivery::Kind::bounded,
                                         Delivery::Kind::best_effort),
                       ::testing::Values(1.0, 6.0)));

// There are more calls than may be open at a time. They also have more early packets than fit a
// peer's early buffer, so some early packets are dropped.
TEST(FewOwners, ManyCallsAtOnceEndUnderLoss) {
  GroupOptions options{.size = kOwners};
  options.faults = {.loss = 0.2, .seed = 9};
  EngineGroup group(options);
  std::vector<FloatAllReduce> calls;
  for (int i = 0; i < 3 * limits::kOpenCollectivesMax; ++i)
    calls.emplace_back(kOwners, kOneDatagram + static_cast<std::size_t>(i % 3) * 352);
  for (FloatAllReduce& call : calls) call.submit_all(group);
  for (FloatAllReduce& call : calls) EXPECT_TRUE(call.finish(group));
  EXPECT_TRUE(group.settle());
}

// The owner calls late, and the contribution sent before that is lost. By then the sender repeats
// its END only rarely, so the owner's own time-out must make it ask.
TEST(FewOwners, AnOwnerThatIsLateAsksForWhatWasLostBeforeItOpened) {
  EngineGroup group(GroupOptions{.size = kOwners});
  FloatAllReduce before(kOwners, 5000);
  before.submit_all(group);
  ASSERT_TRUE(before.finish(group));
  ASSERT_TRUE(group.settle());
  group.filter = [](Rank from, Rank to, ByteSpan datagram) {
    const auto header = testing::data_header_of(datagram);
    return !header || from != 2 || to != 1 || header->attempt > 0;
  };
  FloatAllReduce call(kOwners, kOneDatagram);  // the second call: its owner is rank 1
  for (const Rank rank : {0, 2, 3}) call.submit(group, rank);
  group.run_until([] { return false; }, 60ms);
  const Instant opened = group.now();
  call.submit(group, 1);
  ASSERT_TRUE(call.finish(group));
  EXPECT_LE(group.now() - opened, 8ms);
}

class FewOwnersAndTheDead : public ::testing::TestWithParam<Rank> {
 protected:
  static constexpr Rank kVictim = 3;
  // Makes calls on all ranks until rank GetParam() owns the next one.
  void SetUp() override {
    for (Rank turn = 0; turn < kOwners + GetParam(); ++turn) {
      FloatAllReduce call(kOwners, kOneDatagram);
      call.submit_all(group_);
      ASSERT_TRUE(call.finish(group_));
    }
    ASSERT_TRUE(group_.settle());
    group_.freeze(kVictim);
  }
  void submit(FloatAllReduce& call) {
    for (Rank rank = 0; rank < kVictim; ++rank) call.submit(group_, rank);
  }

  EngineGroup group_{GroupOptions{.size = kOwners, .peer_timeout = 3s}};
};

// Only the owner waits for the dead rank, but the errors of all ranks must name it.
TEST_P(FewOwnersAndTheDead, EveryExactCallNamesThem) {
  FloatAllReduce call(kOwners, kOneDatagram, exact(no_deadline));
  submit(call);
  ASSERT_TRUE(group_.run(call.requests(), 5s));
  for (const Request* request : call.requests()) {
    EXPECT_EQ(request->status.code(), StatusCode::kPeerLost);
    EXPECT_NE(request->status.text().find("rank 3 is dead"), std::string::npos)
        << request->status.text();
  }
}

TEST_P(FewOwnersAndTheDead, LossyCallsEndByTheirDeadlineThenWithoutWaiting) {
  for (int turn = 0; turn < 40; ++turn) {
    FloatAllReduce call(kOwners, kOneDatagram, best_effort(200ms));
    const Instant start = group_.now();
    submit(call);
    ASSERT_TRUE(group_.run(call.requests(), 201ms));
    const bool owner_is_dead = (GetParam() + turn) % kOwners == kVictim;
    for (Rank rank = 0; rank < kVictim; ++rank) {
      const CollectiveReport& report = call.report(rank);
      EXPECT_EQ(report.complete, !owner_is_dead);
      EXPECT_EQ(report.elements_missing, owner_is_dead ? kOneDatagram : 0u);
      EXPECT_EQ(call.data(rank), call.data(0));
      if (owner_is_dead) {
        EXPECT_EQ(call.data(rank), std::vector<float>(kOneDatagram, 0.0f));
      }
    }
    if (turn >= 36) {
      EXPECT_LE(group_.now() - start, 10ms);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Owner, FewOwnersAndTheDead, ::testing::Values(0, 2, 3));

// Rank 2 lives, but does not make the call. Ranks that exchange no packets with it find out by
// asking it.
TEST(FewOwners, TheDeadlineNamesABystanderThatHasNotBegun) {
  EngineGroup group(GroupOptions{.size = kOwners});
  FloatAllReduce call(kOwners, kOneDatagram, exact(2s));
  for (const Rank rank : {0, 1, 3}) call.submit(group, rank);
  ASSERT_TRUE(group.run(call.requests(), 2s + 1ms));
  for (const Request* request : call.requests()) {
    EXPECT_EQ(request->status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_NE(request->status.text().find("rank 2", 8), std::string::npos)
        << request->status.text();
  }
  EXPECT_NE(call.requests()[1]->status.text().find("has not begun it"), std::string::npos);
}

const OperationSpec kBarrier{.kind = OperationKind::barrier};

std::uint64_t data_of_barriers(int size, bool one_host, int barriers) {
  EngineGroup group(GroupOptions{.size = size, .one_host = one_host});
  for (int i = 0; i < barriers; ++i)
    EXPECT_TRUE(group.run(group.submit_all([](Rank) { return kBarrier; })));
  return total(group).data_sent;
}

TEST(BarrierOnOneHost, GoesThroughOneRank) {
  EXPECT_EQ(data_of_barriers(kOwners, false, 8), 8 * kOwners * (kOwners - 1));
  EXPECT_EQ(data_of_barriers(kOwners, true, 8), 8 * 2 * (kOwners - 1));
  // With two ranks both kinds of barrier send two messages. The direct kind takes one delay of the
  // network, and the kind through one rank takes two, so two ranks use the direct kind.
  EXPECT_EQ(data_of_barriers(2, true, 8), 8 * 2);
}

TEST(BarrierOnOneHost, TheDeadlineNamesWhoHasNotCome) {
  for (Rank owner = 0; owner < kOwners; ++owner) {
    EngineGroup group(GroupOptions{.size = kOwners, .one_host = true});
    for (Rank turn = 0; turn < owner; ++turn)
      ASSERT_TRUE(group.run(group.submit_all([](Rank) { return kBarrier; })));
    OperationSpec spec = kBarrier;
    spec.options.delivery = exact(2s);
    std::vector<Request*> requests;
    for (const Rank rank : {0, 1, 3}) requests.push_back(&group.submit(rank, spec));
    ASSERT_TRUE(group.run(requests, 2s + 1ms));
    for (const Request* request : requests) {
      EXPECT_EQ(request->status.code(), StatusCode::kDeadlineExceeded);
      const std::string text(request->status.text());
      EXPECT_NE(text.find(": barrier #"), std::string::npos) << text;
      EXPECT_NE(text.find("rank 2", 8), std::string::npos) << text;
    }
  }
}

// A barrier on one host is planned like an all-reduce of a byte, but the two must not match.
TEST(BarrierOnOneHost, IsNoAllReduceOfAByte) {
  EngineGroup group(GroupOptions{.size = kOwners, .one_host = true});
  std::byte byte{};
  OperationSpec sum{.kind = OperationKind::all_reduce,
                    .input = {&byte, 1, DataType::u8},
                    .output = {&byte, 1, DataType::u8}};
  const auto requests = group.submit_all([&](Rank rank) { return rank == 3 ? sum : kBarrier; });
  ASSERT_TRUE(group.run(requests));
  for (const Request* request : requests)
    EXPECT_EQ(request->status.code(), StatusCode::kMismatch) << request->status.text();
}

TEST(FewOwners, InquiriesBackOff) {
  EngineGroup group(GroupOptions{.size = kOwners});
  FloatAllReduce call(kOwners, kOneDatagram, exact(no_deadline));
  for (const Rank rank : {0, 1, 3}) call.submit(group, rank);
  group.run_until([] { return false; }, 60s);
  EXPECT_LE(total(group).probes_sent, 3 * 3 * 70u);
  call.submit(group, 2);
  ASSERT_TRUE(group.run(call.requests(), 5ms));
}

}  // namespace
}  // namespace leeway::collective
