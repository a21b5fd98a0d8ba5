// Tests messages with tags, of unknown length, from any rank, and in groups.
#include <gtest/gtest.h>

#include <numeric>

#include "base/limits.h"
#include "base/philox.h"
#include "collective/message_group.h"
#include "support/engine_group.h"

namespace leeway::collective {
namespace {

using namespace std::chrono_literals;
using testing::EngineGroup;
using testing::GroupOptions;

GroupOptions stream_network(int size, double loss = 0.0, std::uint64_t seed = 1) {
  GroupOptions options{.size = size, .seed = seed};
  options.faults.loss = loss;
  options.faults.reorder = loss > 0 ? 0.1 : 0.0;
  options.faults.seed = seed;
  return options;
}

// Submits messages, and keeps their requests and memory.
class Mail {
 public:
  explicit Mail(EngineGroup& group) : group_(group) {}

  struct Received {
    Request* request;
    std::vector<float>* data;

    const MessageReport& report() const { return request->report.messages.at(0); }
    std::vector<float> contents() const {
      return {data->begin(), data->begin() + static_cast<std::ptrdiff_t>(report().count)};
    }
  };

  Request& send(Rank from, Rank to, std::vector<float> data, std::uint32_t tag = 0,
                Duration deadline = 30s) {
    OperationSpec spec{.kind = OperationKind::send, .peer = to};
    spec.input = std::span(keep(std::move(data)));
    return submit(from, spec, tag, deadline);
  }
  Received receive(Rank to, Rank from, std::size_t room, std::uint32_t tag = 0,
                   Duration deadline = 30s) {
    std::vector<float>& data = keep(std::vector<float>(room, -1.0f));
    OperationSpec spec{.kind = OperationKind::recv, .peer = from};
    spec.output = std::span(data);
    return {&submit(to, spec, tag, deadline), &data};
  }
  void run(Duration limit = 30s) {
    ASSERT_TRUE(group_.run(requests_, limit));
    for (const Request* request : requests_)
      ASSERT_TRUE(request->status.ok()) << request->status.text();
  }
  bool run_anyhow(Duration limit = 100s) { return group_.run(requests_, limit); }

 private:
  std::vector<float>& keep(std::vector<float> data) {
    return *data_.emplace_back(std::make_unique<std::vector<float>>(std::move(data)));
  }
  Request& submit(Rank rank, OperationSpec& spec, std::uint32_t tag, Duration deadline) {
    spec.options.tag = tag;
    spec.options.delivery = exact(deadline);
    requests_.push_back(&group_.submit(rank, spec));
    return *requests_.back();
  }

  EngineGroup& group_;
  std::vector<std::unique_ptr<std::vector<float>>> data_;
  std::vector<Request*> requests_;
};

std::vector<float> stream_values(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// ---- length -------------------------------------------------------------------------------------

TEST(MessageLength, OfAReceiveIsWhatWasSent) {
  for (const double loss : {0.0, 0.2}) {
    for (const std::size_t sent : {0u, 1u, 352u, 353u, 5000u}) {
      EngineGroup group(stream_network(2, loss));
      Mail mail(group);
      const auto received = mail.receive(1, 0, 5000);
      mail.send(0, 1, stream_values(sent, 3.0f));
      mail.run();
      EXPECT_EQ(received.report().count, sent);
      EXPECT_EQ(received.report().source, 0);
      EXPECT_EQ(received.contents(), stream_values(sent, 3.0f));
      if (sent < 5000) {
        EXPECT_EQ((*received.data)[sent], -1.0f);
      }
      EXPECT_TRUE(group.settle());
    }
  }
}

TEST(MessageLength, OfEncodedMessagesIsExact) {
  EngineGroup group(stream_network(2));
  std::vector<float> sent(37, 1.0f), received(100);
  OperationSpec send{.kind = OperationKind::send, .input = std::span(sent), .peer = 1};
  OperationSpec receive{.kind = OperationKind::recv, .output = std::span(received), .peer = 0};
  send.options.codec = receive.options.codec = Codec::nvfp4;  // two elements a byte
  Request& out = group.submit(0, send);
  Request& in = group.submit(1, receive);
  ASSERT_TRUE(group.run({&out, &in}, 1s));
  ASSERT_TRUE(in.status.ok()) << in.status.text();
  EXPECT_EQ(in.report.messages.at(0).count, 37u);
}

TEST(MessageLength, OfNothingIsMatched) {
  EngineGroup group(stream_network(2));
  Mail mail(group);
  const auto received = mail.receive(1, 0, 0);
  group.run_until([] { return false; }, 10ms);
  EXPECT_FALSE(received.request->done);
  mail.send(0, 1, {});
  mail.run();
  EXPECT_EQ(received.report().count, 0u);
}

// ---- tags ---------------------------------------------------------------------------------------

TEST(MessageTags, DoNotWaitForEachOther) {
  EngineGroup group(stream_network(2));
  Mail mail(group);
  for (std::uint32_t i = 0; i < 40; ++i) mail.send(0, 1, stream_values(3000, 0.0f), 1);
  for (std::uint32_t i = 0; i < 40; ++i) mail.receive(1, 0, 3000, 2);
  Request& sent = mail.send(0, 1, stream_values(3000, 9.0f), 3);
  const auto received = mail.receive(1, 0, 3000, 3);
  ASSERT_TRUE(group.run({&sent, received.request}, 10s)) << "behind tags that nobody serves yet";
  EXPECT_EQ(received.contents(), stream_values(3000, 9.0f));
  EXPECT_EQ(received.report().tag, 3u);
  for (std::uint32_t i = 0; i < 40; ++i) mail.receive(1, 0, 3000, 1);
  for (std::uint32_t i = 0; i < 40; ++i) mail.send(0, 1, stream_values(3000, 0.0f), 2);
  mail.run();
}

TEST(MessageTags, OfAnyNumberMayBeOpen) {
  for (const double loss : {0.0, 0.1}) {
    EngineGroup group(stream_network(2, loss));
    Mail mail(group);
    constexpr std::uint32_t kTags = 200;
    for (std::uint32_t tag = 0; tag < kTags; ++tag)
      mail.send(0, 1, stream_values(2000, 1.0f + tag), tag);
    std::vector<Mail::Received> received;
    for (std::uint32_t tag = kTags; tag-- > 0;) received.push_back(mail.receive(1, 0, 2000, tag));
    mail.run();
    for (const auto& each : received)
      EXPECT_EQ(each.contents(), stream_values(2000, 1.0f + each.report().tag));
    EXPECT_TRUE(group.settle());
  }
}

TEST(MessageTags, BeyondTheLimitAreRefused) {
  EngineGroup group(stream_network(2));
  Mail mail(group);
  const Status over = Status::error(StatusCode::kCancelled, "enough");
  for (std::uint32_t tag = 1; tag < limits::kTagsPerPeerMax; ++tag) {
    mail.send(0, 1, {1.0f}, tag);
    if (tag % 16 == 15) group.engine(0).cancel(group.now(), over);
  }
  Request& last = mail.send(0, 1, {1.0f}, 70'000, 1ms);
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.status.code(), StatusCode::kResourceExhausted) << last.status.text();
}

TEST(MessageTags, AreForMessagesOnly) {
  OperationSpec spec{.kind = OperationKind::barrier};
  spec.options.tag = 1;
  EXPECT_EQ(validate(spec, 0, 2).code(), StatusCode::kInvalidArgument);
}

// The receiver announces a receive at once, without a time-out. The sender, which has had no
// message with it yet, must remember the announcement.
TEST(MessageTags, AReceiveIsAnnouncedBeforeTheFirstMessage) {
  EngineGroup group(stream_network(2));
  Mail mail(group);
  const auto received = mail.receive(1, 0, 30'000, 3);
  ASSERT_TRUE(group.run_until([&] { return group.delivered() > 0; }));
  const Instant sent_at = group.now();
  Request& sent = mail.send(0, 1, stream_values(30'000, 9.0f), 3);
  ASSERT_TRUE(group.run({&sent, received.request}, 10s));
  EXPECT_EQ(received.contents(), stream_values(30'000, 9.0f));
  EXPECT_LT(group.now() - sent_at, 400us) << "a time-out passed";
}

// Tags come in any order on both sides, and packets are lost and overtaken. The n-th message of a
// tag must match the n-th receive.
TEST(MessageTags, MatchInOrderWhateverIsLost) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EngineGroup group(stream_network(2, 0.1, seed));
    Mail mail(group);
    auto draw = [&, next = 0u](std::uint64_t below) mutable {
      return static_cast<std::uint32_t>(keyed_hash(seed, next++, 0, 0, 0) % below);
    };
    std::vector<std::uint32_t> order(60);
    for (auto& tag : order) tag = draw(5);
    std::map<std::uint32_t, float> sent, taken;
    for (const std::uint32_t tag : order)
      mail.send(0, 1, stream_values(1 + draw(1000), 100.0f * tag + 1000.0f * sent[tag]++), tag);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw(i)]);
    std::vector<Mail::Received> received;
    for (const std::uint32_t tag : order) received.push_back(mail.receive(1, 0, 1000, tag));
    mail.run();
    for (const auto& each : received) {
      const std::uint32_t tag = each.report().tag;
      EXPECT_EQ((*each.data)[0], 100.0f * tag + 1000.0f * taken[tag]++);
    }
    EXPECT_TRUE(group.settle());
  }
}

// A message that does not fit fails on both sides, whichever reports are lost, and the next message
// is right. Both messages are too long for their sends to be done as soon as they are copied.
TEST(MessageLength, BeyondTheReceiveFailsOnBothSidesWhateverIsLost) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GroupOptions network = stream_network(2, 0.3, seed);
    network.peer_timeout = 3s;  // ranks that wait probe their peers
    EngineGroup group(network);
    Mail mail(group);
    Request& sent = mail.send(0, 1, stream_values(20'000, 1.0f), 3);
    const auto received = mail.receive(1, 0, 5, 3);
    ASSERT_TRUE(group.run({&sent, received.request}, 10s));
    EXPECT_EQ(received.request->status.code(), StatusCode::kMismatch)
        << received.request->status.text();
    EXPECT_EQ(sent.status.code(), StatusCode::kMismatch) << sent.status.text();
    Request& next = mail.send(0, 1, stream_values(20'000, 2.0f), 3);
    const auto taken = mail.receive(1, 0, 20'000, 3);
    ASSERT_TRUE(group.run({&next, taken.request}, 10s));
    EXPECT_TRUE(next.status.ok()) << next.status.text();
    EXPECT_EQ(taken.contents(), stream_values(20'000, 2.0f));
  }
}

// More receives fail than one report can list, among them that of a long send. The sender must not
// take a report that does not list the receive for success.
TEST(MessageLength, BeyondTheReceiveFailsOnBothSidesAmongManyOthers) {
  for (const double loss : {0.0, 0.3}) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      SCOPED_TRACE("loss " + std::to_string(loss) + ", seed " + std::to_string(seed));
      GroupOptions network = stream_network(2, loss, seed);
      network.peer_timeout = 3s;
      EngineGroup group(network);
      Mail mail(group);
      std::vector<Mail::Received> received;
      for (std::uint32_t i = 0; i < 33; ++i)
        received.push_back(mail.receive(1, 0, i < 32 ? 5 : 5000, i % 3));
      const auto next = mail.receive(1, 0, 20'000, 0);
      for (std::uint32_t i = 0; i < 32; ++i) mail.send(0, 1, stream_values(10, 1.0f), i % 3);
      Request& longest = mail.send(0, 1, stream_values(20'000, 1.0f), 32 % 3);
      Request& sent = mail.send(0, 1, stream_values(20'000, 2.0f), 0);
      ASSERT_TRUE(mail.run_anyhow());
      EXPECT_EQ(longest.status.code(), StatusCode::kMismatch) << longest.status.text();
      for (const Mail::Received& each : received)
        EXPECT_EQ(each.request->status.code(), StatusCode::kMismatch);
      EXPECT_TRUE(sent.status.ok()) << sent.status.text();
      EXPECT_EQ(next.contents(), stream_values(20'000, 2.0f));
    }
  }
}

// ---- beside failed collectives
// -------------------------------------------------------------------

// Reports list the collectives that failed lately, until later collectives push them out. Reports
// must have room for messages all the same, because the program may call no collective before its
// messages have ended.
TEST(MessagesBesideFailures, EndAsWithoutThem) {
  for (const double loss : {0.0, 0.3}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE("loss " + std::to_string(loss) + ", seed " + std::to_string(seed));
      GroupOptions network = stream_network(2, loss, seed);
      network.peer_timeout = 3s;
      EngineGroup group(network);
      std::vector<float> sums(5);
      for (int i = 0; i < limits::kOpenRoundsMax; ++i) {
        const auto calls = group.submit_all([&](Rank rank) {
          const auto values = std::span(sums).first(rank == 0 ? 4 : 5);
          return OperationSpec{
              .kind = OperationKind::all_reduce, .input = values, .output = values};
        });
        ASSERT_TRUE(group.run(calls, 30s));
        for (const Request* call : calls)
          EXPECT_EQ(call->status.code(), StatusCode::kMismatch) << call->status.text();
      }

      Mail mail(group);
      std::vector<Mail::Received> unfit;
      for (int i = 0; i < 6; ++i) unfit.push_back(mail.receive(1, 0, 10, 1));
      const auto fit = mail.receive(1, 0, 20'000, 1);
      const auto from_any = mail.receive(1, kAnyRank, 20'000, 2);
      Request& hasty = mail.send(0, 1, stream_values(20'000, 0.0f), 3, 20ms);
      std::vector<Request*> longer;
      for (int i = 0; i < 6; ++i)
        longer.push_back(&mail.send(0, 1, stream_values(20'000, 1.0f), 1));
      mail.send(0, 1, stream_values(20'000, 2.0f), 1);
      mail.send(0, 1, stream_values(20'000, 3.0f), 2);
      ASSERT_TRUE(mail.run_anyhow(20s));
      for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(unfit[i].request->status.code(), StatusCode::kMismatch);
        EXPECT_EQ(longer[i]->status.code(), StatusCode::kMismatch) << longer[i]->status.text();
      }
      EXPECT_EQ(fit.contents(), stream_values(20'000, 2.0f));
      EXPECT_EQ(from_any.contents(), stream_values(20'000, 3.0f));
      EXPECT_EQ(hasty.status.code(), StatusCode::kDeadlineExceeded) << hasty.status.text();

      const auto late = mail.receive(1, 0, 20'000, 3);
      ASSERT_TRUE(mail.run_anyhow(20s)) << "its sender has given up";
      EXPECT_FALSE(late.request->status.ok());
    }
  }
}

// ---- any source ---------------------------------------------------------------------------------

TEST(AnySource, TakesWhatComes) {
  for (const double loss : {0.0, 0.3}) {
    EngineGroup group(stream_network(4, loss));
    Mail mail(group);
    std::vector<Mail::Received> received;
    for (int i = 0; i < 6; ++i) received.push_back(mail.receive(0, kAnyRank, 5000, 7));
    for (Rank from = 1; from < 4; ++from) {
      mail.send(from, 0, stream_values(from * 1000, 10.0f * from), 7);
      mail.send(from, 0, stream_values(from * 1000, 10.0f * from + 1), 7);
    }
    mail.run();
    std::map<Rank, float> of;
    for (const auto& each : received) {
      const Rank source = each.report().source;
      EXPECT_EQ(each.contents(), stream_values(source * 1000, 10.0f * source + of[source]++))
          << "messages of one rank in its order";
    }
    EXPECT_EQ(of.size(), 3u);
    EXPECT_TRUE(group.settle());
  }
}

TEST(AnySource, HearsOfWhatWasSentBefore) {
  for (const double loss : {0.0, 0.3}) {
    EngineGroup group(stream_network(3, loss));
    Mail mail(group);
    for (int i = 0; i < 12; ++i)
      // These are more datagrams than rank 0 keeps before it has posted a receive.
      mail.send(2, 0, stream_values(3000, 1.0f), 5);
    mail.send(2, 0, stream_values(3000, 4.0f), 6);
    group.run_until([] { return false; }, 50ms);
    const auto received = mail.receive(0, kAnyRank, 3000, 6);
    ASSERT_TRUE(group.run({received.request}, 10s));
    EXPECT_EQ(received.report().source, 2);
    for (int i = 0; i < 12; ++i) mail.receive(0, kAnyRank, 3000, 5);
    mail.run();
  }
}

TEST(AnySource, HearsOfASendBehindManyOtherTags) {
  constexpr std::uint32_t kOthers = 300;
  EngineGroup group(stream_network(2));
  Mail mail(group);
  for (std::uint32_t i = 0; i < kOthers; ++i) mail.send(1, 0, stream_values(3000, 0.0f), 100 + i);
  Request& sent = mail.send(1, 0, stream_values(3000, 9.0f), 6);
  const auto received = mail.receive(0, kAnyRank, 3000, 6);
  ASSERT_TRUE(group.run({&sent, received.request}, 10s));
  EXPECT_EQ(received.contents(), stream_values(3000, 9.0f));
  for (std::uint32_t i = 0; i < kOthers; ++i) mail.receive(0, 1, 3000, 100 + i);
  mail.run();
}

TEST(AnySource, LaterReceivesOfTheTagWaitBehindIt) {
  EngineGroup group(stream_network(3));
  Mail mail(group);
  const auto any = mail.receive(0, kAnyRank, 10, 1);
  const auto named = mail.receive(0, 1, 10, 1);
  const auto other = mail.receive(0, 1, 10, 2);
  mail.send(1, 0, {5.0f}, 2);
  ASSERT_TRUE(group.run({other.request}, 1s)) << "another tag waits for nothing";
  mail.send(1, 0, {6.0f}, 1);
  ASSERT_TRUE(group.run({any.request}, 1s));
  EXPECT_FALSE(named.request->done);
  mail.send(1, 0, {7.0f}, 1);
  mail.run();
  EXPECT_EQ(any.contents(), std::vector<float>{6.0f});
  EXPECT_EQ(named.contents(), std::vector<float>{7.0f});
}

TEST(AnySource, FailsAtItsDeadlineWhereNobodySends) {
  EngineGroup group(stream_network(3));
  Mail mail(group);
  const auto any = mail.receive(0, kAnyRank, 10, 1, 100ms);
  const auto behind = mail.receive(0, 1, 10, 1, 50ms);
  ASSERT_TRUE(group.run({behind.request}, 51ms));
  EXPECT_FALSE(any.request->done);
  ASSERT_TRUE(group.run({any.request}, 51ms));
  EXPECT_EQ(any.request->status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(any.request->status.text().find("any rank, tag 1"), std::string_view::npos)
      << any.request->status.text();
  EXPECT_NE(behind.request->status.text().find("behind a receive"), std::string_view::npos);
  EXPECT_TRUE(group.engine(0).idle());
  mail.send(1, 0, {1.0f}, 1);  // the failed receives used up no number
  const auto next = mail.receive(0, kAnyRank, 10, 1);
  ASSERT_TRUE(group.run({next.request}, 1s));
  EXPECT_EQ(next.contents(), std::vector<float>{1.0f});
}

TEST(AnySource, WaitsForEverWithoutADeadline) {
  EngineGroup group(stream_network(2));
  Mail mail(group);
  const auto any = mail.receive(0, kAnyRank, 10, 1, no_deadline);
  EXPECT_FALSE(group.run({any.request}, 1s));
  EXPECT_FALSE(any.request->done) << any.request->status.text();
  mail.send(1, 0, {1.0f}, 1);
  ASSERT_TRUE(group.run({any.request}, 1s));
  EXPECT_EQ(any.contents(), std::vector<float>{1.0f});
}

TEST(AnySource, FailsWhereAllOtherRanksAreDead) {
  GroupOptions options = stream_network(3);
  options.peer_timeout = 3s;
  EngineGroup group(options);
  Mail mail(group);
  const auto any = mail.receive(0, kAnyRank, 10, 1, no_deadline);
  group.freeze(1);
  EXPECT_FALSE(group.run({any.request}, 10s)) << "rank 2 may send yet";
  group.freeze(2);
  ASSERT_TRUE(group.run({any.request}, 10s));
  EXPECT_EQ(any.request->status.code(), StatusCode::kPeerLost);
  EXPECT_NE(any.request->status.text().find("rank 1 is dead"), std::string_view::npos)
      << any.request->status.text();
  EXPECT_TRUE(group.engine(0).idle());
}

TEST(AnySource, IsCancelledWithTheRest) {
  EngineGroup group(stream_network(2));
  Mail mail(group);
  const auto any = mail.receive(0, kAnyRank, 10);
  group.engine(0).cancel(group.now(), Status::error(StatusCode::kCancelled, "shut down"));
  EXPECT_TRUE(any.request->done);
  EXPECT_EQ(any.request->status.code(), StatusCode::kCancelled);
  EXPECT_TRUE(group.engine(0).idle());
}

// ---- groups -------------------------------------------------------------------------------------

// An exchange with a call on every rank, and the memory of its messages.
class Exchange {
 public:
  Exchange(EngineGroup& group, Duration deadline) : group_(group), deadline_(deadline) {
    sides_.resize(group.size());
  }

  // send() and receive() append to the messages of their rank, in the order of the calls.
  void send(Rank from, Rank to, std::vector<float> data, std::uint32_t tag = 0) {
    sides_[from].push_back(leeway::Message::send(std::span(keep(std::move(data))), to, tag));
  }
  std::vector<float>& receive(Rank to, Rank from, std::size_t room, std::uint32_t tag = 0) {
    std::vector<float>& data = keep(std::vector<float>(room, -1.0f));
    sides_[to].push_back(leeway::Message::recv(std::span(data), from, tag));
    return data;
  }
  std::vector<leeway::Message>& side(Rank rank) { return sides_[rank]; }
  Request& submit(Rank rank) {
    OperationSpec spec{.kind = OperationKind::exchange};
    spec.options.delivery = exact(deadline_);
    spec.messages = std::make_shared<std::vector<leeway::Message>>(sides_[rank]);
    return group_.submit(rank, spec);
  }
  std::vector<Request*> submit_all() {
    std::vector<Request*> requests;
    for (Rank rank = 0; rank < group_.size(); ++rank) requests.push_back(&submit(rank));
    return requests;
  }

 private:
  std::vector<float>& keep(std::vector<float> data) {
    return *data_.emplace_back(std::make_unique<std::vector<float>>(std::move(data)));
  }
  EngineGroup& group_;
  Duration deadline_;
  std::vector<std::vector<leeway::Message>> sides_;
  std::vector<std::unique_ptr<std::vector<float>>> data_;
};

// Sends `count` messages between ranks drawn at random, themselves included, in random order.
void exchange_at_random(int size, int count, double loss, std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  EngineGroup group(stream_network(size, loss, seed));
  Exchange exchange(group, 60s);
  auto draw = [&, next = 0u](std::uint64_t below) mutable {
    return static_cast<std::uint32_t>(keyed_hash(seed, next++, 1, 0, 0) % below);
  };
  struct Expected {
    Rank from, to;
    std::vector<float>* data;
    std::vector<float> sent;
  };
  std::vector<Expected> expected;
  std::map<std::vector<std::uint32_t>, float> numbers;
  for (int i = 0; i < count; ++i) {
    const auto from = static_cast<Rank>(draw(size));
    const auto to = static_cast<Rank>(draw(size));
    const std::uint32_t tag = draw(2) == 0 ? 0 : draw(4);
    const std::size_t length = draw(8) == 0 ? 0 : draw(i % 50 == 0 ? 20'000 : 60);
    const auto sent =
        stream_values(length, 1000.0f * from + 100.0f * to +
                                  numbers[std::vector<std::uint32_t>{from, to, tag}]++);
    exchange.send(from, to, sent, tag);
    expected.push_back({from, to, &exchange.receive(to, from, length + draw(30), tag), sent});
  }
  // Shuffles each rank's messages. Messages of one pair and tag keep their order.
  for (Rank rank = 0; rank < size; ++rank) {
    auto& side = exchange.side(rank);
    const auto original = side;
    std::vector<std::size_t> order(side.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draw(i)]);
    std::map<std::vector<std::uint32_t>, std::vector<std::size_t>> places;
    const auto key = [&](std::size_t i) -> std::vector<std::uint32_t> {
      return {std::uint32_t(original[i].kind), original[i].peer, original[i].tag};
    };
    for (std::size_t i = 0; i < original.size(); ++i) places[key(i)].push_back(i);
    for (auto& [which, list] : places) std::reverse(list.begin(), list.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto& list = places[key(order[i])];
      side[i] = original[list.back()];
      list.pop_back();
    }
  }
  const auto requests = exchange.submit_all();
  ASSERT_TRUE(group.run(requests, 60s));
  for (const Request* request : requests)
    ASSERT_TRUE(request->status.ok()) << request->status.text();
  for (const Expected& each : expected) {
    const std::vector<float> got(
        each.data->begin(), each.data->begin() + static_cast<std::ptrdiff_t>(each.sent.size()));
    ASSERT_EQ(got, each.sent) << each.from << " to " << each.to;
  }
  for (Rank rank = 0; rank < size; ++rank) {
    const CollectiveReport& report = requests[rank]->report;
    ASSERT_EQ(report.messages.size(), exchange.side(rank).size());
    for (std::size_t i = 0; i < report.messages.size(); ++i) {
      const leeway::Message& message = exchange.side(rank)[i];
      const bool sends = message.kind == leeway::Message::Kind::send;
      EXPECT_EQ(report.messages[i].source, sends ? rank : message.peer);
      EXPECT_EQ(report.messages[i].tag, message.tag);
    }
  }
  EXPECT_TRUE(group.settle());
}

TEST(Exchange, OfAThousandMessagesInAnyOrderIsOneOperation) {
  exchange_at_random(2, 1024, 0.0, 1);
  exchange_at_random(4, 1024, 0.0, 2);
  exchange_at_random(3, 1024, 0.1, 3);
}

TEST(Exchange, OfAnythingCompletesUnderLoss) {
  for (std::uint64_t seed = 10; seed < 60; ++seed)
    exchange_at_random(1 + static_cast<int>(seed % 5), static_cast<int>(seed * 7 % 90), 0.1, seed);
}

// At most 16 messages of a tag and direction are in progress at a time. A report admits the next
// 16, so 1,024 messages take about 64 round trips.
TEST(Exchange, OfManySmallMessagesTakesARoundTripForSixteen) {
  EngineGroup group(stream_network(2));
  Exchange exchange(group, 10s);
  for (int i = 0; i < 1024; ++i) {
    for (const Rank self : {0, 1}) {
      exchange.receive(self, 1 - self, 100);
      exchange.send(self, 1 - self, stream_values(100, 1.0f));
    }
  }
  const Instant begin = group.now();
  ASSERT_TRUE(group.run(exchange.submit_all(), 10s));
  const auto round_trips = static_cast<double>((group.now() - begin).count()) / 200'000.0;
  RecordProperty("round_trips", std::to_string(round_trips));
  EXPECT_LE(round_trips, 80.0);
}

TEST(Exchange, OfNothingIsDoneAtOnce) {
  EngineGroup group(stream_network(2));
  Exchange exchange(group, 1s);
  EXPECT_TRUE(exchange.submit(0).done);
}

TEST(Exchange, NamesTheRankThatTakesNoPart) {
  EngineGroup group(stream_network(4));
  Exchange exchange(group, 200ms);
  for (Rank rank = 0; rank < 4; ++rank) {
    for (Rank peer = 0; peer < 4; ++peer) {
      for (int i = 0; i < 5; ++i) exchange.send(rank, peer, stream_values(100, 1.0f));
      for (int i = 0; i < 7 && rank != peer; ++i) exchange.receive(rank, peer, 100);
      for (int i = 0; i < 5 && rank == peer; ++i) exchange.receive(rank, peer, 100);
    }
  }
  for (Rank rank : {0, 1, 3}) {
    for (Rank peer : {0, 1, 3}) {
      for (int i = 0; i < 2 && rank != peer; ++i)
        exchange.send(rank, peer, stream_values(100, 1.0f));
    }
  }
  std::vector<Request*> requests = {&exchange.submit(0), &exchange.submit(1), &exchange.submit(3)};
  ASSERT_TRUE(group.run(requests, 201ms));
  for (const Request* request : requests) {
    EXPECT_EQ(request->status.code(), StatusCode::kDeadlineExceeded);
    EXPECT_NE(request->status.text().find("rank 2 owes 7 messages, and has not taken 5"),
              std::string_view::npos)
        << request->status.text();
  }
}

TEST(Exchange, IsCheckedAsAWholeBeforeAnythingIsSent) {
  EngineGroup group(stream_network(2));
  const auto expect = [&](Exchange& exchange, const char* text) {
    const Request& request = exchange.submit(0);
    EXPECT_TRUE(request.done);
    EXPECT_EQ(request.status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(request.status.text().find(text), std::string_view::npos) << request.status.text();
    EXPECT_TRUE(group.engine(0).idle());
  };
  Exchange nobody(group, 1s);
  nobody.send(0, 1, {1.0f});
  nobody.send(0, 9, {1.0f});
  expect(nobody, "message 1 of 2: send: rank 9 does not exist");
  Exchange alone(group, 1s);
  alone.send(0, 0, {1.0f});
  expect(alone, "has no receive in the same group");
  Exchange unsent(group, 1s);
  unsent.receive(0, 0, 1);
  expect(unsent, "has no send in the group");
  Exchange small(group, 1s);
  small.send(0, 0, {1.0f, 2.0f});
  small.receive(0, 0, 1);
  expect(small, "more than the receive has room for");
}

TEST(Exchange, FailsOnBothSidesWhereAMessageIsTooLong) {
  EngineGroup group(stream_network(2));
  Exchange exchange(group, 500ms);
  exchange.send(0, 1, stream_values(11, 1.0f));
  exchange.receive(1, 0, 10);
  exchange.send(0, 1, stream_values(11, 1.0f));
  exchange.receive(1, 0, 20);
  const auto requests = exchange.submit_all();
  ASSERT_TRUE(group.run(requests, 501ms));
  for (const Request* request : requests) {
    EXPECT_EQ(request->status.code(), StatusCode::kMismatch);
    EXPECT_NE(request->status.text().find("message 0 of 2"), std::string_view::npos)
        << request->status.text();
  }
}

TEST(Exchange, MayReceiveFromAnyRank) {
  EngineGroup group(stream_network(4, 0.1));
  Exchange exchange(group, 10s);
  for (Rank rank = 0; rank < 4; ++rank) {
    for (Rank peer = 0; peer < 4; ++peer) {
      if (rank == peer) continue;
      exchange.send(rank, peer, stream_values(500, rank), 3);
      exchange.receive(rank, kAnyRank, 500, 3);
    }
  }
  const auto requests = exchange.submit_all();
  ASSERT_TRUE(group.run(requests, 10s));
  for (Rank rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(requests[rank]->status.ok()) << requests[rank]->status.text();
    std::map<Rank, int> sources;
    for (const MessageReport& message : requests[rank]->report.messages) ++sources[message.source];
    EXPECT_EQ(sources.size(), 4u) << "itself three times, and each other once";
  }
}

}  // namespace
}  // namespace leeway::collective
