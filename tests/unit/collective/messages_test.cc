// send and recv: any number may be open, in any order, beside any number of collectives.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/limits.h"
#include "support/datagram_view.h"
#include "support/engine_group.h"
#include "support/float_all_reduce.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::FloatAllReduce;
using testing::GroupOptions;

constexpr Duration kMessageTick{limits::kTickNs};

GroupOptions message_network(int size, double loss = 0.0) {
  GroupOptions options{.size = size};
  options.faults.loss = loss;
  return options;
}

// Posts messages between two ranks. Each message has a length and values of its own.
class Traffic {
 public:
  Traffic(EngineGroup& group, std::size_t elements) : group_(group), elements_(elements) {}

  void send(Rank from, Rank to, int count, Duration deadline = 30s) {
    for (int i = 0; i < count; ++i) post(OperationKind::send, from, to, i, deadline);
  }
  void receive(Rank to, Rank from, int count, Duration deadline = 30s) {
    for (int i = 0; i < count; ++i) post(OperationKind::recv, to, from, i, deadline);
  }
  Request& post(OperationKind kind, Rank self, Rank peer, int i, Duration deadline = 30s) {
    const bool sends = kind == OperationKind::send;
    auto& data = buffers_.emplace_back(std::make_unique<std::vector<float>>(
        elements_ + i % 7, sends ? value(self, peer, i) : -1.0f));
    OperationSpec spec{.kind = kind, .peer = peer};
    spec.options = options;
    spec.options.delivery = exact(deadline);
    if (sends) {
      spec.input = std::span(*data);
    } else {
      spec.output = std::span(*data);
      expected_.emplace_back(data.get(), value(peer, self, i));
    }
    requests.push_back(&group_.submit(self, spec));
    return *requests.back();
  }
  void expect_all_arrived() const {
    for (const Request* request : requests) {
      ASSERT_TRUE(request->done);
      ASSERT_TRUE(request->status.ok()) << request->status.text();
    }
    for (const auto& [data, value] : expected_) {
      ASSERT_EQ(*data, std::vector<float>(data->size(), value));
    }
  }

  CollectiveOptions options;
  std::vector<Request*> requests;

 private:
  static float value(Rank from, Rank to, int i) {
    return static_cast<float>(i + 10'000 * from + 50'000 * to);
  }

  EngineGroup& group_;
  std::size_t elements_;
  std::vector<std::unique_ptr<std::vector<float>>> buffers_;
  std::vector<std::pair<const std::vector<float>*, float>> expected_;
};

class ManyMessages : public ::testing::TestWithParam<int> {};

TEST_P(ManyMessages, MayAllBeReceivedBeforeTheFirstIsSent) {
  for (const double loss : {0.0, 0.1}) {
    EngineGroup group(message_network(2, loss));
    Traffic traffic(group, 10);
    for (const Rank self : {0, 1}) {
      traffic.receive(self, 1 - self, GetParam());
      traffic.send(self, 1 - self, GetParam());
    }
    ASSERT_TRUE(group.run(traffic.requests, 29s)) << "wait for their deadline";
    traffic.expect_all_arrived();
    EXPECT_TRUE(group.settle());
  }
}

TEST_P(ManyMessages, MayAllBeSentBeforeTheFirstIsReceived) {
  EngineGroup group(message_network(3));
  Traffic traffic(group, 3000);  // more than the eager packets
  for (const Rank self : {0, 1, 2}) traffic.send(self, (self + 1) % 3, GetParam());
  group.run_until([] { return false; }, 20ms);
  for (const Rank self : {0, 1, 2}) traffic.receive(self, (self + 2) % 3, GetParam());
  ASSERT_TRUE(group.run(traffic.requests, 29s));
  traffic.expect_all_arrived();
}

TEST_P(ManyMessages, AndCollectivesDoNotWaitForEachOther) {
  EngineGroup group(message_network(2, 0.05));
  Traffic traffic(group, 2000);
  std::vector<std::unique_ptr<FloatAllReduce>> calls;
  const auto reduce = [&] {
    calls.push_back(std::make_unique<FloatAllReduce>(2, 3000));
    calls.back()->submit_all(group);
  };
  // Each rank has twice as many collectives as a report's list holds.
  for (const Rank self : {0, 1}) traffic.receive(self, 1 - self, GetParam());
  for (int i = 0; i < 2 * limits::kOpenRoundsMax; ++i) reduce();
  for (auto& call : calls) EXPECT_TRUE(call->finish(group)) << "behind messages nobody sends yet";
  for (const Rank self : {0, 1}) traffic.send(self, 1 - self, GetParam());
  reduce();
  ASSERT_TRUE(group.run(traffic.requests, 29s));
  traffic.expect_all_arrived();
  EXPECT_TRUE(calls.back()->finish(group));
}

INSTANTIATE_TEST_SUITE_P(Counts, ManyMessages, ::testing::Values(8, 16, 17, 64, 1024));

// The receiver's reports are full of collectives, which its peer opens only after the message. The
// message must pass nevertheless.
TEST(Messages, PassWhereEveryCollectiveWaitsForThem) {
  EngineGroup group(message_network(2));
  Traffic traffic(group, 30'000);
  std::vector<std::unique_ptr<FloatAllReduce>> calls;
  traffic.receive(0, 1, 5);
  for (int i = 0; i < 2 * limits::kOpenRoundsMax; ++i) {
    calls.push_back(std::make_unique<FloatAllReduce>(2, 30'000));
    calls.back()->submit(group, 0);
  }
  traffic.send(1, 0, 5);
  ASSERT_TRUE(group.run(traffic.requests, 1s));
  traffic.expect_all_arrived();
  for (auto& call : calls) call->submit(group, 1);
  for (auto& call : calls) EXPECT_TRUE(call->finish(group));
}

TEST(Messages, EachKeepsItsOwnDeadline) {
  EngineGroup group(message_network(2));
  Traffic traffic(group, 10);
  traffic.receive(0, 1, 40, 10s);
  Request& hasty = traffic.post(OperationKind::recv, 0, 1, 40, 20ms);
  EXPECT_TRUE(group.run({&hasty}, 20ms + kMessageTick));
  EXPECT_EQ(hasty.status.code(), StatusCode::kDeadlineExceeded) << hasty.status.text();
  EXPECT_FALSE(traffic.requests.front()->done);
  // The failed message has used up its number, so the next message goes to the next receive.
  traffic.send(1, 0, 41);
  ASSERT_TRUE(group.run(traffic.requests, 5s));
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(traffic.requests[i]->status.ok()) << i;
}

// A group of messages must fail with the error of its message. Here the group has no deadline, but
// the sender of its message has one.
TEST(Messages, AGroupHearsThatASendToItWasGivenUp) {
  EngineGroup group(message_network(2));
  group.filter = [](Rank from, Rank, ByteSpan datagram) {
    return from != 0 || !testing::data_header_of(datagram);
  };
  std::vector<float> data(20'000, 1.0f);
  OperationSpec exchange{.kind = OperationKind::exchange};
  exchange.messages = std::make_shared<const std::vector<leeway::Message>>(
      std::vector{leeway::Message::recv(std::span(data), 0)});
  exchange.options.delivery = exact(no_deadline);
  Request& waiting = group.submit(1, exchange);
  Traffic traffic(group, data.size());
  traffic.post(OperationKind::send, 0, 1, 0, 20ms);
  ASSERT_TRUE(group.run({&waiting}, 1s));
  EXPECT_EQ(waiting.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(waiting.status.text().find("rank 0 gave it up at its own deadline"),
            std::string_view::npos)
      << waiting.status.text();
}

// A send is done when its message has been copied. The receiver comes late, and another call has
// used up the credit, so the messages leave only after the deadlines of their sends.
TEST(Messages, AreDoneWhenTheyHaveBeenCopiedAndComeAfterTheirDeadline) {
  EngineGroup group(GroupOptions{.size = 2, .window_bytes = 16 << 10});
  std::vector<float> in(100'000, 1.0f);
  std::vector<float> out(100'000);
  OperationSpec large{.kind = OperationKind::all_to_all};
  large.input = std::span<const float>(in);
  large.output = std::span(out);
  large.options.delivery = exact(30ms);
  const Request& given_up = group.submit(0, large);
  Traffic traffic(group, 16'000);
  for (std::uint32_t i = 0; i < limits::kSendsAheadMax; ++i) {
    EXPECT_TRUE(traffic.post(OperationKind::send, 0, 1, static_cast<int>(i), 50ms).done) << i;
  }
  const Request& one_too_many =
      traffic.post(OperationKind::send, 0, 1, static_cast<int>(limits::kSendsAheadMax), 50ms);
  EXPECT_FALSE(one_too_many.done);
  group.run_until([] { return false; }, 200ms);
  EXPECT_EQ(given_up.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(one_too_many.status.code(), StatusCode::kDeadlineExceeded);
  traffic.requests.pop_back();
  traffic.receive(1, 0, limits::kSendsAheadMax);
  ASSERT_TRUE(group.run(traffic.requests, 5s));
  traffic.expect_all_arrived();
}

TEST(Messages, ThatWaitAskTogether) {
  EngineGroup group(message_network(2));
  Traffic traffic(group, 10);
  for (int i = 0; i < 1024; ++i) {
    traffic.post(OperationKind::recv, 0, 1, i, 100s);
    if (i < 20) group.run_until([] { return false; }, 5ms);
  }
  group.run_until([] { return false; }, 1s);
  const protocol::Endpoint& endpoint = group.engine(0).endpoint();
  const std::uint64_t before = endpoint.counters().reports_sent;
  group.run_until([] { return false; }, 10s);
  // All receives are announced together, by one report per longest time-out.
  const auto alone = static_cast<std::uint64_t>(10s / endpoint.link(1).rtt().timeout(6));
  EXPECT_LE(endpoint.counters().reports_sent - before, alone + 1);
  traffic.send(1, 0, 1024);
  ASSERT_TRUE(group.run(traffic.requests, 10s));
  traffic.expect_all_arrived();
}

TEST(Messages, OfAPeerThatLeavesAllFail) {
  EngineGroup group(message_network(2));
  Traffic traffic(group, 10'000);
  traffic.receive(0, 1, 100);
  group.run_until([] { return false; }, 5ms);
  group.engine(1).endpoint().say_goodbye(group.now());
  ASSERT_TRUE(group.run(traffic.requests, 1s)) << "nobody waits for the deadline";
  for (const Request* request : traffic.requests)
    EXPECT_EQ(request->status.code(), StatusCode::kPeerLost) << request->status.text();
  EXPECT_TRUE(group.engine(0).idle());
}

TEST(Messages, AreCancelledWithTheRest) {
  EngineGroup group(message_network(2));
  Traffic traffic(group, 10);
  traffic.receive(0, 1, 50);
  traffic.send(0, 1, 50);
  group.engine(0).cancel(group.now(), Status::error(StatusCode::kCancelled, "shut down"));
  for (const Request* request : traffic.requests) EXPECT_TRUE(request->done);
  EXPECT_TRUE(group.engine(0).idle());
}

// One of many messages differs between the sides. Both sides learn which one, and the others pass.
TEST(Messages, OneOfManyThatIsMeantDifferentlyFailsOnBothSides) {
  EngineGroup group(message_network(2));
  Traffic traffic(group, 20'000);
  std::vector<float> shorter(19'000);
  OperationSpec spec{.kind = OperationKind::recv, .peer = 1};
  spec.output = std::span(shorter);
  traffic.receive(0, 1, 5);
  Request& received = group.submit(0, spec);
  traffic.receive(0, 1, 30);
  traffic.send(1, 0, 5);
  Request& sent = traffic.post(OperationKind::send, 1, 0, 5);
  traffic.requests.pop_back();
  traffic.send(1, 0, 30);
  ASSERT_TRUE(group.run({&received, &sent}, 1s));
  EXPECT_EQ(received.status.code(), StatusCode::kMismatch) << received.status.text();
  EXPECT_EQ(sent.status.code(), StatusCode::kMismatch) << sent.status.text();
  ASSERT_TRUE(group.run(traffic.requests, 1s));
  traffic.expect_all_arrived();
}

// The receiver must hear why the message failed, even if none of its reports came through before
// the sender ended the message.
TEST(Messages, ThatDoNotMatchSaySoToAReceiverThatHearsItLate) {
  EngineGroup group(message_network(2));
  std::vector<std::int32_t> integers(20'000);
  OperationSpec spec{.kind = OperationKind::recv, .peer = 1};
  spec.output = std::span(integers);
  Request& received = group.submit(0, spec);
  group.run_until([] { return false; }, 5ms);
  group.filter = [](Rank from, Rank, ByteSpan) { return from == 0; };
  Traffic traffic(group, 20'000);
  Request& sent = traffic.post(OperationKind::send, 1, 0, 0);
  ASSERT_TRUE(group.run({&sent}, 1s));
  EXPECT_EQ(sent.status.code(), StatusCode::kMismatch) << sent.status.text();
  group.run_until([] { return false; }, 1s);
  EXPECT_FALSE(received.done);
  group.filter = nullptr;
  ASSERT_TRUE(group.run({&received}, 5s));
  EXPECT_EQ(received.status.code(), StatusCode::kMismatch) << received.status.text();
  EXPECT_NE(received.status.text().find("send float[20000]"), std::string::npos)
      << received.status.text();
}

// Long encoded messages are copied to the library's memory. Yet their sender must wait to hear
// whether they fit.
TEST(Messages, LongEncodedOnesAreDoneWhenTheirReceiversHaveThem) {
  EngineGroup group(message_network(2));
  Traffic traffic(group, 100'000);
  traffic.options.codec = Codec::bf16;
  Request& sent = traffic.post(OperationKind::send, 0, 1, 0);
  group.run_until([] { return false; }, 1s);
  EXPECT_FALSE(sent.done);
  traffic.receive(1, 0, 1);
  ASSERT_TRUE(group.run(traffic.requests, 5s));
  EXPECT_TRUE(sent.status.ok()) << sent.status.text();
}

// A rank that leaves cancels the operations for which it waits. Sends that are done still reach
// their receivers.
TEST(Messages, ThatAreDoneAreNotCancelledWithWhatIsAwaited) {
  EngineGroup group(message_network(2));
  Traffic traffic(group, 10);
  traffic.send(0, 1, 20);
  std::vector<float> never(10);
  OperationSpec spec{.kind = OperationKind::recv, .peer = 1};
  spec.output = std::span(never);
  Request& awaited = group.submit(0, spec);
  group.engine(0).cancel(group.now(), Status::error(StatusCode::kCancelled, "destroyed"),
                         protocol::Cancelled::awaited);
  EXPECT_EQ(awaited.status.code(), StatusCode::kCancelled);
  group.engine(0).endpoint().leave(group.now());
  group.run_until([] { return false; }, 1500ms);
  traffic.receive(1, 0, 20);
  ASSERT_TRUE(group.run(traffic.requests, 5s));
  traffic.expect_all_arrived();
}

// A codec's random bits are keyed by facts of the message that both sides know. So it does not
// matter how many operations either side has had with others.
TEST(Messages, MayBeEncodedAndRotated) {
  EngineGroup group(message_network(3));
  Traffic others(group, 10);
  others.send(0, 2, 3);
  others.receive(2, 0, 3);
  Traffic traffic(group, 512);
  traffic.options.codec = Codec::int8;
  traffic.options.codec.rotate = true;
  Request& sent = traffic.post(OperationKind::send, 0, 1, 0);
  std::vector<float> in(512);
  OperationSpec spec{.kind = OperationKind::recv, .peer = 0};
  spec.options = traffic.options;
  spec.output = std::span(in);
  Request& received = group.submit(1, spec);
  ASSERT_TRUE(group.run({&sent, &received}, 1s));
  ASSERT_TRUE(received.status.ok()) << received.status.text();
  for (const float value : in) EXPECT_NEAR(value, 50'000.0f, 10'000.0f);
}

// Rotation signs and random bits are keyed by the collective's number, which all ranks share.
// Messages must not change that number, because ranks have had different numbers of them.
TEST(Messages, OfSomeRanksAreNothingToAnEncodedCollective) {
  EngineGroup group(message_network(3));
  Traffic traffic(group, 10);
  traffic.send(0, 2, 3);
  traffic.receive(2, 0, 3);
  ASSERT_TRUE(group.run(traffic.requests, 1s));
  const std::vector<float> in(512, 8.0f);
  std::array<std::vector<float>, 3> out;
  const auto requests = group.submit_all([&](Rank rank) {
    out[rank].resize(in.size());
    OperationSpec spec{
        .kind = OperationKind::all_reduce, .input = std::span(in), .output = std::span(out[rank])};
    spec.options.op = ReduceOp::avg;
    spec.options.codec = Codec::int8;
    spec.options.codec.rotate = true;
    return spec;
  });
  ASSERT_TRUE(group.run(requests, 1s));
  for (Rank rank = 0; rank < 3; ++rank) {
    ASSERT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.text();
    EXPECT_EQ(out[rank], out[0]) << "rank " << rank;
    for (const float value : out[rank]) ASSERT_NEAR(value, 8.0f, 2.0f);
  }
}

}  // namespace
}  // namespace leeway::collective
