#include "transport/sealed/sealed_transport.h"

#include <gtest/gtest.h>

#include <deque>

#include "support/train_datagrams.h"
#include "unit/seal/pair.h"
#include "unit/transport/datagrams.h"

namespace leeway::transport {
namespace {

using namespace std::chrono_literals;

// A line between two transports. A datagram arrives at the other end at once.
struct Line {
  std::deque<Bytes> to[2];
};

// One end of the line. A test can make it full. It may read trains after send(), as RDMA does.
class LineTransport final : public DatagramTransport {
 public:
  LineTransport(Line& line, Rank self) : line_(line), self_(self) {}

  std::string_view name() const override { return "line"; }
  const TransportLimits& limits() const override { return limits_; }
  Status register_memory(ByteSpan) override {
    ++registered;
    return Status();
  }
  std::size_t send(std::span<const Train> trains) override {
    const std::size_t count = std::min(room, trains.size());
    for (const Train& train : trains.first(count)) {
      support::for_each_datagram(train, [&](ByteSpan datagram) {
        line_.to[train.to].emplace_back(datagram.begin(), datagram.end());
      });
      longest = std::max(longest, train.total_bytes);
    }
    room -= count;
    reading += reads_on ? count : 0;
    return count;
  }
  std::size_t borrowed() override { return reading; }
  std::size_t receive(std::span<Received> out) override {
    here_.clear();
    auto& line = line_.to[self_];
    while (here_.size() < out.size() && !line.empty()) {
      here_.push_back(std::move(line.front()));
      line.pop_front();
    }
    for (std::size_t i = 0; i < here_.size(); ++i)
      out[i] = {static_cast<Rank>(1 - self_), here_[i]};
    return here_.size();
  }
  void wait(Duration) override {}
  void wake() override {}
  TransportCounters counters() const override { return {}; }

  std::size_t room = SIZE_MAX;
  std::size_t reading = 0;
  bool reads_on = false;
  std::size_t longest = 0;
  int registered = 0;

 private:
  Line& line_;
  const Rank self_;
  TransportLimits limits_{1472, 65507, 64, 256, 1u << 20, true};
  std::vector<Bytes> here_;
};

class SealedTransportTest : public ::testing::Test {
 protected:
  SealedTransportTest() {
    for (const Rank self : {0, 1}) {
      auto inner = std::make_unique<LineTransport>(line_, self);
      inner_[self] = inner.get();
      ends_[self] = std::make_unique<SealedTransport>(std::move(inner), [this] { return now_; });
      ends_[self]->meet(1 - self, seal::keys_of(1, self == 0),
                        seal::aead_maker(seal::AeadKind::aes_128_gcm));
    }
  }
  std::vector<Bytes> arrivals() { return receive_all(*ends_[1], SIZE_MAX); }
  std::uint64_t count(Rank at, std::string_view name) {
    for (const auto& [row, value] : ends_[at]->named_seal_counters()) {
      if (row == name) return value;
    }
    ADD_FAILURE() << "no counter " << name;
    return 0;
  }

  Instant now_{1};
  Line line_;
  LineTransport* inner_[2];
  std::unique_ptr<SealedTransport> ends_[2];
};

TEST_F(SealedTransportTest, TrainsArriveAsTheyWereAndTravelSealed) {
  const OwnedTrain train(1, 1440, pattern(20 * 1440 + 77), {56, 1440, 9000});
  ASSERT_EQ(send_one(*ends_[0], train.train), 1u);
  ASSERT_EQ(line_.to[1].size(), 21u);
  EXPECT_EQ(line_.to[1].front().size(), 1472u);
  EXPECT_EQ(std::search(line_.to[1][1].begin(), line_.to[1][1].end(), train.datagram(1).begin(),
                        train.datagram(1).begin() + 16),
            line_.to[1][1].end());
  const auto all = arrivals();
  ASSERT_EQ(all.size(), 21u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], bytes_of(train.datagram(i)));
  EXPECT_EQ(count(0, "sealed"), 21u);
  EXPECT_EQ(count(1, "opened"), 21u);
}

TEST_F(SealedTransportTest, LimitsLeaveRoomForTheSeal) {
  const TransportLimits& limits = ends_[0]->limits();
  EXPECT_EQ(limits.datagram_bytes_max, 1440u);
  EXPECT_EQ(limits.train_bytes_max, 65507u - 64 * 32);
  EXPECT_FALSE(limits.multicast);
  EXPECT_TRUE(limits.intact);
}

TEST_F(SealedTransportTest, WhatFindsNoRoomGoesOutLater) {
  inner_[0]->room = 1;
  const OwnedTrain first(1, 100, pattern(100, 1));
  const OwnedTrain second(1, 100, pattern(100, 2));
  const Train both[] = {first.train, second.train};
  EXPECT_EQ(ends_[0]->send(both), 2u);
  EXPECT_EQ(line_.to[1].size(), 1u);
  inner_[0]->room = 5;
  ends_[0]->wait(1ms);
  EXPECT_EQ(line_.to[1].size(), 2u);
  EXPECT_EQ(arrivals(), (std::vector<Bytes>{first.memory, second.memory}));
}

TEST_F(SealedTransportTest, TakesNoMoreThanItCanHold) {
  inner_[0]->room = 0;
  const OwnedTrain train(1, 100, pattern(100));
  std::size_t taken = 0;
  for (int i = 0; i < 50; ++i) taken += send_one(*ends_[0], train.train);
  EXPECT_EQ(taken, 16u);
  inner_[0]->room = 1000;
  EXPECT_EQ(send_one(*ends_[0], train.train), 1u);
  EXPECT_EQ(arrivals().size(), 17u);
}

// A device reads the sealed copy, so the caller's memory is free at once. The copy must not be
// reused before the device has read it.
TEST_F(SealedTransportTest, SealedTrainsThatAreBeingReadAreLeftAlone) {
  inner_[0]->reads_on = true;
  const OwnedTrain train(1, 100, pattern(100));
  for (int i = 0; i < 16; ++i) ASSERT_EQ(send_one(*ends_[0], train.train), 1u);
  EXPECT_EQ(ends_[0]->borrowed(), 0u);
  EXPECT_EQ(send_one(*ends_[0], train.train), 0u);
  inner_[0]->reading -= 2;
  EXPECT_EQ(send_one(*ends_[0], train.train), 1u);
  EXPECT_EQ(inner_[0]->registered, 16);
}

TEST_F(SealedTransportTest, PlainDatagramsAreRefused) {
  line_.to[1].push_back(data_packet(0, 1));
  EXPECT_TRUE(arrivals().empty());
  EXPECT_EQ(count(1, "refused_unsealed"), 1u);
}

TEST_F(SealedTransportTest, RefusedDatagramsLeaveNoGapAmongOthers) {
  const OwnedTrain train(1, 100, pattern(300));
  send_one(*ends_[0], train.train);
  line_.to[1][1][40] ^= std::byte{1};
  line_.to[1].push_back(line_.to[1][0]);
  EXPECT_EQ(arrivals(),
            (std::vector<Bytes>{bytes_of(train.datagram(0)), bytes_of(train.datagram(2))}));
  EXPECT_EQ(count(1, "refused_forged"), 1u);
  EXPECT_EQ(count(1, "refused_replayed"), 1u);
}

TEST_F(SealedTransportTest, KeysChangeAlsoWhereNobodySendsAnything) {
  const OwnedTrain train(0, 100, pattern(100));
  send_one(*ends_[1], train.train);
  const auto rest = [&] {
    for (int i = 0; i < 5; ++i) {
      for (auto& end : ends_) {
        end->wait(1ms);
        EXPECT_LE(receive_all(*end, SIZE_MAX).size(), 1u);
      }
    }
  };
  rest();
  EXPECT_EQ(count(0, "key_phases"), 1u);
  EXPECT_EQ(count(1, "key_phases"), 1u);
  send_one(*ends_[1], train.train);
  rest();
  now_ = now_ + 120s;
  rest();
  EXPECT_EQ(count(0, "key_phases"), 2u);
  EXPECT_EQ(count(1, "key_phases"), 2u);
}

// A device may still read trains that take all places for sending. Messages about keys must then
// wait, and go out as soon as a place is free.
TEST_F(SealedTransportTest, KeysChangeAsSoonAsThereIsRoom) {
  inner_[0]->reads_on = true;
  const OwnedTrain train(1, 100, pattern(100));
  const OwnedTrain back(0, 100, pattern(100));
  for (int i = 0; i < 16; ++i) ASSERT_EQ(send_one(*ends_[0], train.train), 1u);
  send_one(*ends_[1], back.train);
  EXPECT_EQ(receive_all(*ends_[0], SIZE_MAX).size(), 1u);
  EXPECT_EQ(line_.to[1].size(), 16u);
  inner_[0]->reading = 0;
  ends_[0]->wait(1ms);
  EXPECT_EQ(line_.to[1].size(), 17u);
}

TEST_F(SealedTransportTest, NothingGoesToAStranger) {
  const OwnedTrain train(5, 100, pattern(100));
  EXPECT_EQ(send_one(*ends_[0], train.train), 1u);
  EXPECT_EQ(ends_[0]->counters().send_errors, 1u);
  EXPECT_TRUE(line_.to[1].empty() && line_.to[0].empty());
}

}  // namespace
}  // namespace leeway::transport
