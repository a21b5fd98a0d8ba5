// Many tags in flight between two ranks: what one of them costs must not depend on how many there
// are, and the order in which the two ranks post them must not matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "endpoint_pair.h"

namespace leeway::protocol {
namespace {

using namespace std::chrono_literals;

class EndpointTags : public ::testing::Test {
 protected:
  // Rank 1 sends, rank 0 receives.
  FakeClient& send(std::uint32_t tag, std::uint32_t packets = 1) {
    return open(sends_, 1, tag, {packets, 0});
  }
  FakeClient& receive(std::uint32_t tag, std::uint32_t packets = 1) {
    return open(receives_, 0, tag, {0, packets});
  }
  void send_all(const std::vector<std::uint32_t>& tags, std::uint32_t packets = 1) {
    for (const std::uint32_t tag : tags) send(tag, packets);
  }
  void receive_all(const std::vector<std::uint32_t>& tags, std::uint32_t packets = 1) {
    for (const std::uint32_t tag : tags) receive(tag, packets);
  }
  // Tags `from`, `from` + 1, ...
  static std::vector<std::uint32_t> tags(std::size_t count, std::uint32_t from = 1) {
    std::vector<std::uint32_t> made(count);
    for (std::size_t i = 0; i < count; ++i) made[i] = from + static_cast<std::uint32_t>(i);
    return made;
  }
  // Number of operations of both ranks that have not ended well.
  std::size_t unfinished() const {
    const auto not_done = [](const FakeClient& client) {
      return !client.done() || !client.status.ok();
    };
    return static_cast<std::size_t>(std::count_if(sends_.begin(), sends_.end(), not_done) +
                                    std::count_if(receives_.begin(), receives_.end(), not_done));
  }
  // Loses this share of the datagrams of both ranks from now on.
  void lose(double share) {
    pair_.filter = [this, share](Rank, ByteSpan) {
      return std::uniform_real_distribution<>()(random_) >= share;
    };
  }
  std::uint64_t datagrams() {
    std::uint64_t sum = 0;
    for (const Rank rank : {0, 1}) {
      const EndpointCounters& counters = pair_[rank].counters();
      sum += counters.data_sent + counters.reports_sent + counters.ends_sent +
             counters.requests_sent + counters.probes_sent;
    }
    return sum;
  }

  EndpointPair pair_;
  std::mt19937 random_{1};

 private:
  FakeClient& open(std::deque<FakeClient>& clients, Rank rank, std::uint32_t tag,
                   const FakeClient& made) {
    FakeClient& client = clients.emplace_back(made);
    RoundPlan plan = pair_.message(1 - rank, rank == 1, 60s);
    plan.message_tag = tag;
    plan.tag.count = 1'000'000;
    pair_.open(rank, plan, client);
    return client;
  }

  std::deque<FakeClient> sends_, receives_;
};

TEST_F(EndpointTags, OppositeOrdersCostAFewDatagramsEach) {
  constexpr std::size_t kTags = 3000;
  std::vector<std::uint32_t> order = tags(kTags);
  send_all(order);
  std::reverse(order.begin(), order.end());
  receive_all(order);
  pair_.pass(10s);
  EXPECT_EQ(unfinished(), 0u);
  EXPECT_LT(datagrams(), 4 * kTags);
}

TEST_F(EndpointTags, AnyOrderDoesAndSoDoesLoss) {
  for (const double loss : {0.0, 0.2}) {
    lose(loss);
    for (const std::uint32_t packets : {1u, 10u}) {
      std::vector<std::uint32_t> order = tags(600);
      std::shuffle(order.begin(), order.end(), random_);
      send_all(order, packets);
      std::shuffle(order.begin(), order.end(), random_);
      receive_all(order, packets);
      pair_.pass(30s);
      EXPECT_EQ(unfinished(), 0u) << loss << " " << packets;
    }
  }
}

// On each side, the messages that have a turn are not posted on the other side. The messages that
// match can go only because the two ranks also tell each other of messages without a turn.
TEST_F(EndpointTags, ThoseWithATurnNeedNotBeThoseThatMatch) {
  for (const double loss : {0.0, 0.2}) {
    lose(loss);
    for (const std::uint32_t packets : {1u, 10u}) {
      const std::uint32_t base = 100'000 * packets + (loss > 0 ? 50'000 : 0);
      const std::size_t many = 2 * limits::kTalkingTagsMax;
      send_all(tags(many, base));
      receive_all(tags(many, base + 10'000));
      pair_.pass(1s);
      const std::size_t waiting = unfinished();
      const FakeClient& sent = send(base + 20'000, packets);
      const FakeClient& received = receive(base + 20'000, packets);
      pair_.pass(20s);
      EXPECT_TRUE(sent.done() && received.done()) << loss << " " << packets;
      EXPECT_EQ(unfinished(), waiting);
      receive_all(tags(many, base));
      send_all(tags(many, base + 10'000));
      pair_.pass(20s);
      EXPECT_EQ(unfinished(), 0u) << loss << " " << packets;
    }
  }
}

TEST_F(EndpointTags, ASendAsksOnceASecondForItsReceive) {
  send_all(tags(1000));
  pair_.pass(2s);
  const std::uint64_t before = datagrams();
  pair_.pass(10s);
  EXPECT_LT(datagrams() - before, 10 * 2 * (limits::kTalkingTagsMax + limits::kEarlySlotsPerPeer))
      << "questions and answers";
  receive_all(tags(1000));
  pair_.pass(5s);
  EXPECT_EQ(unfinished(), 0u);
}

}  // namespace
}  // namespace leeway::protocol
