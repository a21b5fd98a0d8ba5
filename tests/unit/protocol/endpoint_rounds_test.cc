// Tests many operations, several kinds at once, and leaving.
#include <gtest/gtest.h>

#include <array>

#include "base/limits.h"
#include "support/datagram_view.h"
#include "support/float_all_reduce.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;
using collective::OperationKind;
using collective::OperationSpec;
using collective::Request;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;

GroupOptions network(int size, double loss = 0.0) {
  GroupOptions options{.size = size};
  options.faults.loss = loss;
  return options;
}

TEST(EndpointRounds, MoreThanMayBeOpenQueueUpAndAllFinish) {
  for (const double loss : {0.0, 0.2}) {
    EngineGroup group(network(3, loss));
    std::vector<std::unique_ptr<FloatAllReduce>> calls;
    for (int i = 0; i < 3 * limits::kOpenCollectivesMax; ++i) {
      calls.push_back(std::make_unique<FloatAllReduce>(3, 100 + 977 * i));
      calls.back()->submit_all(group);
      for (Rank rank = 0; rank < 3; ++rank) {
        EXPECT_LE(group.engine(rank).endpoint().rounds().open_count(),
                  std::size_t{limits::kOpenCollectivesMax});
      }
    }
    EXPECT_EQ(group.engine(0).endpoint().rounds().open_count(),
              std::size_t{limits::kOpenCollectivesMax});
    for (auto& call : calls) EXPECT_TRUE(call->finish(group));
    for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i]->report(0).sequence, i);
    EXPECT_TRUE(group.settle());
  }
}

TEST(EndpointRounds, RanksMayBeManyOperationsApart) {
  EngineGroup group(network(2));
  std::vector<std::unique_ptr<FloatAllReduce>> calls;
  for (int i = 0; i < 30; ++i) {
    calls.push_back(std::make_unique<FloatAllReduce>(2, 3000));
    calls.back()->submit(group, 0);
  }
  group.run_until([] { return false; }, 20ms);
  for (auto& call : calls) call->submit(group, 1);
  for (auto& call : calls) EXPECT_TRUE(call->finish(group));
}

// A broadcast whose receiver lags. The receiver sends the root only reports and requests.
class Behind : public ::testing::Test {
 protected:
  Request& broadcast(Rank rank, Duration deadline) {
    data_[rank].assign(elements_, static_cast<float>(rank));
    OperationSpec spec{.kind = OperationKind::broadcast, .peer = 0};
    spec.input = spec.output = std::span(data_[rank]);
    spec.options.delivery = exact(deadline);
    return group_.submit(rank, spec);
  }
  void pass(Duration time) {
    group_.run_until([] { return false; }, time);
  }
  // Expects that rank 1's caller is told soon that rank 0 has given up the operation.
  void expect_left(const Request& request) {
    EXPECT_TRUE(group_.run_until([&] { return request.done; }, 1s)) << "waits for its deadline";
    EXPECT_EQ(request.status.code(), StatusCode::kDeadlineExceeded) << request.status.text();
    EXPECT_NE(request.status.text().find("rank 0 gave it up at its own deadline"),
              std::string_view::npos);
  }

  EngineGroup group_{network(2)};
  std::array<std::vector<float>, 2> data_;
  std::size_t elements_ = 20000;
};

TEST_F(Behind, WhoWaitsForAnOperationThatItsRootGaveUpIsToldAndMeetsItInTheNext) {
  broadcast(0, 100ms);
  pass(200ms);
  expect_left(broadcast(1, 10s));
  const Request& sent = broadcast(0, 10s);
  const Request& received = broadcast(1, 10s);
  ASSERT_TRUE(group_.run_until([&] { return sent.done && received.done; }, 1s));
  EXPECT_TRUE(sent.status.ok() && received.status.ok());
  EXPECT_EQ(data_[1], data_[0]);
}

TEST_F(Behind, WhoAsksForARepairThatNobodyWillMakeIsTold) {
  bool mended = false;
  group_.filter = [&](Rank from, Rank, ByteSpan datagram) {
    if (mended || from != 0 || testing::type_of(datagram) == wire::PacketType::end) return true;
    const auto header = testing::data_header_of(datagram);
    return header && header->attempt == 0 && header->index.value % 4 != 1;
  };
  broadcast(0, 100ms);
  const Request& waiting = broadcast(1, 10s);
  pass(200ms);
  EXPECT_FALSE(waiting.done);
  EXPECT_GT(group_.engine(0).endpoint().counters().repair_requests, 1u);
  mended = true;
  expect_left(waiting);
}

// A small broadcast is sent from a copy, so the root's call ends long before its deadline ends the
// round.
TEST_F(Behind, WhoLacksWhatTheRootNoLongerSendsIsTold) {
  bool mended = false;
  group_.filter = [&](Rank from, Rank, ByteSpan datagram) {
    return mended || from != 0 || !testing::data_header_of(datagram);
  };
  elements_ = 10;
  const Request& sent = broadcast(0, 100ms);
  const Request& waiting = broadcast(1, 10s);
  pass(50ms);
  EXPECT_TRUE(sent.done && sent.status.ok());
  pass(100ms);
  mended = true;
  expect_left(waiting);
}

// Each of two ranks is in an operation that the other has left, and both wait there for a third
// rank.
TEST(EndpointRounds, ReportsAboutWhatWasLeftDoNotAnswerEachOther) {
  EngineGroup group(network(3));
  FloatAllReduce patient(3, 20000, exact(10s)), hasty(3, 20000, exact(50ms));
  patient.submit(group, 0);
  hasty.submit(group, 1);
  group.run_until([] { return false; }, 100ms);
  hasty.submit(group, 0);
  patient.submit(group, 1);
  group.run_until([] { return false; }, 100ms);
  const auto reports = [&] {
    return group.engine(0).endpoint().counters().reports_sent +
           group.engine(1).endpoint().counters().reports_sent;
  };
  const std::uint64_t before = reports();
  group.run_until([] { return false; }, 1s);
  for (const Rank rank : {0, 1}) {
    EXPECT_EQ(patient.requests()[rank]->status.code(), StatusCode::kDeadlineExceeded)
        << "the other's deadline ended it";
  }
  EXPECT_LT(reports() - before, 100u);
}

TEST(EndpointRounds, AThousandSmallOnesOverALossyNetwork) {
  EngineGroup group(network(3, 0.05));
  for (int i = 0; i < 1000; ++i) {
    FloatAllReduce call(3, 10);
    call.submit_all(group);
    ASSERT_TRUE(call.finish(group, 10s)) << i;
  }
}

TEST(EndpointRounds, TwoGroupsInOneProcessAreIndependent) {
  EngineGroup one(network(3)), other(network(2));
  FloatAllReduce first(3, 5000), second(2, 5000);
  first.submit_all(one);
  second.submit(other, 0);
  EXPECT_TRUE(first.finish(one));
  EXPECT_FALSE(second.requests()[0]->done);
  second.submit(other, 1);
  EXPECT_TRUE(second.finish(other));
}

class Messages : public ::testing::Test {
 protected:
  Request& send(EngineGroup& group, Rank from, Rank to, std::vector<float>& data) {
    OperationSpec spec{.kind = OperationKind::send, .peer = to};
    spec.input = std::span(data);
    spec.options.delivery = exact(deadline_);
    return group.submit(from, spec);
  }
  Request& receive(EngineGroup& group, Rank to, Rank from, std::vector<float>& data) {
    OperationSpec spec{.kind = OperationKind::recv, .peer = from};
    spec.output = std::span(data);
    spec.options.delivery = exact(deadline_);
    return group.submit(to, spec);
  }
  Duration deadline_ = 60s;
};

TEST_F(Messages, AreMatchedInOrderPerPairWhateverHappensElsewhere) {
  for (const double loss : {0.0, 0.2}) {
    EngineGroup group(network(3, loss));
    std::vector<std::vector<float>> out, in;
    for (int i = 0; i < 8; ++i) {
      out.emplace_back(500 * (i + 1), static_cast<float>(i));
      in.emplace_back(500 * (i + 1), -1.0f);
    }
    FloatAllReduce call(3, 5000);
    std::vector<Request*> requests;
    for (int i = 0; i < 4; ++i) requests.push_back(&send(group, 0, 1, out[i]));
    call.submit(group, 1);
    for (int i = 4; i < 8; ++i) requests.push_back(&send(group, 0, 2, out[i]));
    call.submit(group, 0);
    for (int i = 4; i < 8; ++i) requests.push_back(&receive(group, 2, 0, in[i]));
    call.submit(group, 2);
    for (int i = 0; i < 4; ++i) requests.push_back(&receive(group, 1, 0, in[i]));
    ASSERT_TRUE(group.run(requests));
    for (const Request* request : requests)
      EXPECT_TRUE(request->status.ok()) << request->status.text();
    EXPECT_EQ(in, out);
    EXPECT_TRUE(call.finish(group));
  }
}

TEST_F(Messages, CrossingOnesDoNotMeetEachOther) {
  EngineGroup group(network(2, 0.1));
  std::vector<float> a(30000, 1.0f), b(20000, 2.0f), at_b(30000), at_a(20000);
  const std::vector<Request*> requests = {&send(group, 0, 1, a), &send(group, 1, 0, b),
                                          &receive(group, 1, 0, at_b), &receive(group, 0, 1, at_a)};
  ASSERT_TRUE(group.run(requests));
  EXPECT_EQ(at_b, a);
  EXPECT_EQ(at_a, b);
}

TEST_F(Messages, ALargeOneWaitsForItsReceiverAndASmallOneDoesNot) {
  EngineGroup group(network(2));
  std::vector<float> large(100000, 1.0f), small(10, 2.0f), large_in(100000), small_in(10);
  Request& small_sent = send(group, 0, 1, small);
  Request& large_sent = send(group, 0, 1, large);
  group.run_until([] { return false; }, 10ms);
  EXPECT_TRUE(small_sent.done);
  EXPECT_FALSE(large_sent.done);
  small.assign(10, -9.0f);  // the caller may use its memory again
  Request& small_received = receive(group, 1, 0, small_in);
  Request& large_received = receive(group, 1, 0, large_in);
  ASSERT_TRUE(group.run({&large_sent, &small_received, &large_received}));
  EXPECT_EQ(small_in, std::vector<float>(10, 2.0f));
  EXPECT_EQ(large_in, large);
}

// A receive must hear that its send was given up, whichever was called first. The next send and
// receive must match.
TEST_F(Messages, ASendThatIsGivenUpEndsItsReceive) {
  for (const bool late : {false, true}) {
    EngineGroup group(network(2));
    std::vector<float> out(100000, 1.0f), in(100000);
    bool mended = false;
    group.filter = [&](Rank from, Rank, ByteSpan datagram) {
      return mended || from != 0 || !testing::data_header_of(datagram);
    };
    deadline_ = 100ms;
    Request& sent = send(group, 0, 1, out);
    deadline_ = 10s;
    Request* received = late ? nullptr : &receive(group, 1, 0, in);
    group.run_until([] { return false; }, 200ms);
    EXPECT_EQ(sent.status.code(), StatusCode::kDeadlineExceeded) << sent.status.text();
    mended = true;
    if (late) received = &receive(group, 1, 0, in);
    ASSERT_TRUE(group.run({received}, 1s)) << "waits for its deadline";
    EXPECT_EQ(received->status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_NE(received->status.text().find("rank 0 gave it up at its own deadline"),
              std::string_view::npos)
        << received->status.text();
    ASSERT_TRUE(group.run({&send(group, 0, 1, out), &receive(group, 1, 0, in)}, 1s));
    EXPECT_EQ(in, out);
  }
}

TEST(EndpointGoodbye, ExactOperationsFailNamingWhoLeftAndLossyOnesReturn) {
  for (const bool lossy : {false, true}) {
    EngineGroup group(network(3));
    FloatAllReduce call(3, 50000, lossy ? best_effort(10s) : exact(10s));
    call.submit(group, 0);
    call.submit(group, 1);
    group.run_until([] { return false; }, 5ms);
    group.engine(2).endpoint().say_goodbye(group.now());
    ASSERT_TRUE(group.run(call.requests(), 1s)) << "nobody waits for the deadline";
    for (const Request* request : call.requests()) {
      EXPECT_EQ(request->status.code(), StatusCode::kPeerLost) << request->status.text();
      if (lossy) {
        EXPECT_NE(request->status.text().find("did not come, most of them from rank 2"),
                  std::string_view::npos)
            << "spread exact promises all: " << request->status.text();
      } else {
        EXPECT_NE(request->status.text().find("rank 2 left"), std::string_view::npos)
            << request->status.text();
        EXPECT_NE(request->status.text().find("all_reduce"), std::string_view::npos);
      }
    }
  }
}

// Two ranks lack equally many packets, but the error must name the one that has left.
TEST(EndpointGoodbye, TheRankThatLeftIsNamedWhereTwoLackEquallyMuch) {
  for (const bool leaves : {false, true}) {
    EngineGroup group(network(3));
    group.filter = [&](Rank from, Rank, ByteSpan datagram) {
      const auto header = testing::data_header_of(datagram);
      return !header || header->kind != FlowKind::spread || from == 1;
    };
    FloatAllReduce call(3, 48'000, best_effort(300ms));
    for (Rank rank = 0; rank < 3; ++rank) call.submit(group, rank);
    if (leaves) {
      group.run_until([] { return false; }, 20ms);
      group.engine(2).endpoint().say_goodbye(group.now());
    }
    ASSERT_TRUE(group.run({call.requests()[1]}, 1s));
    const std::string_view text = call.requests()[1]->status.text();
    EXPECT_NE(text.find(leaves ? "did not come, most of them from rank 2, which is gone ("
                               : "did not come, most of them from ranks 0, 2 ("),
              std::string_view::npos)
        << text;
  }
}

TEST(EndpointGoodbye, LaterOperationsFailAtOnceToo) {
  EngineGroup group(network(2));
  group.engine(1).endpoint().say_goodbye(group.now());
  group.run_until([] { return false; }, 5ms);
  FloatAllReduce call(2, 50000, exact(10s));
  call.submit(group, 0);
  ASSERT_TRUE(group.run(call.requests(), 1s));
  EXPECT_EQ(call.requests()[0]->status.code(), StatusCode::kPeerLost)
      << call.requests()[0]->status.text();
}

TEST(EndpointCancel, FailsWhatIsOpenAndWhatIsQueued) {
  EngineGroup group(network(2));
  std::vector<std::unique_ptr<FloatAllReduce>> calls;
  for (int i = 0; i < limits::kOpenCollectivesMax + 3; ++i) {
    calls.push_back(std::make_unique<FloatAllReduce>(2, 1000));
    calls.back()->submit(group, 0);
  }
  group.engine(0).cancel(group.now(), Status::error(StatusCode::kCancelled, "shut down"));
  for (auto& call : calls) {
    EXPECT_TRUE(call->requests()[0]->done);
    EXPECT_EQ(call->requests()[0]->status.code(), StatusCode::kCancelled);
  }
  EXPECT_TRUE(group.engine(0).idle());
}

TEST(EndpointProbe, IsAnsweredAndMeasuresTheRoundTrip) {
  EngineGroup group(network(4));
  group.engine(0).endpoint().probe_all();
  group.run_until([&] { return group.engine(0).endpoint().peers_proven() == 3; }, 1s);
  EXPECT_EQ(group.engine(0).endpoint().peers_proven(), 3);
  for (Rank peer = 1; peer < 4; ++peer) {
    EXPECT_TRUE(group.engine(0).endpoint().link(peer).rtt().measured());
    EXPECT_EQ(group.engine(0).endpoint().link(peer).rtt().smoothed(), 2 * GroupOptions().delay);
  }
}

// Rank 1's probe is answered, so it knows that its path works. Rank 0 does not know whether its own
// datagrams arrive.
TEST(EndpointProbe, ProvesThePathOfTheOneThatAsksAlone) {
  EngineGroup group(network(2));
  const auto& asked = group.engine(0).endpoint();
  const auto& asking = group.engine(1).endpoint();
  group.engine(1).endpoint().probe_all();
  group.run_until([&] { return asking.link(0).proven(); }, 1s);
  EXPECT_TRUE(asking.link(0).proven());
  EXPECT_TRUE(asked.link(1).heard);
  EXPECT_FALSE(asked.link(1).proven());
  EXPECT_EQ(asked.peers_proven(), 0);
}

}  // namespace
}  // namespace leeway::protocol
