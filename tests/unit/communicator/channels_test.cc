// Two channels behind one communicator: which calls go where, threads, waiting, closing, counters.
#include "communicator/channels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "transport/inproc/inproc_transport.h"

namespace leeway::internal {
namespace {

using namespace std::chrono_literals;
using collective::OperationKind;
using collective::OperationSpec;
using ::testing::Each;

constexpr int kSize = 4;  // averages of small integers and halves are exact

std::vector<std::unique_ptr<Channel>> channels_over(TransportKind kind, std::uint64_t seed) {
  const transport::InprocOptions inproc;
  auto transports = transport::make_inproc_group(kSize, inproc);
  protocol::EndpointConfig config;
  config.size = kSize;
  config.seed = seed;
  config.datagram_bytes = inproc.datagram_bytes;
  config.window_bytes.assign(kSize, 1u << 20);
  std::vector<std::unique_ptr<Channel>> all;
  for (Rank rank = 0; rank < kSize; ++rank) {
    config.self = rank;
    all.push_back(make_channel({}, kind, config, std::move(transports[rank])).value());
  }
  return all;
}

OperationSpec all_reduce(std::vector<float>& data, const Delivery& delivery,
                         Delivery::Kind spread = Delivery::Kind::exact) {
  OperationSpec spec{.kind = OperationKind::all_reduce,
                     .input = std::span<const float>(data),
                     .output = std::span(data)};
  spec.options.op = ReduceOp::avg;
  spec.options.delivery = delivery;
  spec.options.spread = spread;
  return spec;
}

class TwoChannels : public ::testing::Test {
 protected:
  TwoChannels() {
    auto datagrams = channels_over(TransportKind::udp, 1);
    auto exact = channels_over(TransportKind::ucx, 2);
    for (int rank = 0; rank < kSize; ++rank) {
      ranks_.push_back(std::make_unique<Channels>(std::move(datagrams[rank])));
      EXPECT_EQ(ranks_.back()->exact().kind(), TransportKind::udp);
      ranks_.back()->use_for_exact(std::move(exact[rank]));
    }
  }

  template <typename Body>
  void on_all(Body&& body) {
    std::vector<std::thread> threads;
    for (auto& rank : ranks_) threads.emplace_back([&body, &rank] { body(*rank); });
    for (auto& thread : threads) thread.join();
  }

  // Rounds that rank 0 opened since the last call, of each channel.
  std::pair<std::uint64_t, std::uint64_t> rounds() {
    std::map<std::string, std::uint64_t> now;
    for (const auto& [name, value] : ranks_[0]->counters()) {
      EXPECT_TRUE(now.emplace(name, value).second) << name << " twice";
    }
    const std::pair<std::uint64_t, std::uint64_t> total(now.at("rounds_opened"),
                                                        now.at("exact_rounds_opened"));
    const auto before = std::exchange(rounds_, total);
    return {total.first - before.first, total.second - before.second};
  }

  // Calls it on all ranks; whether the datagrams' channel had it.
  bool rides_with_datagrams(const std::function<OperationSpec(Channels&)>& make) {
    (void)rounds();
    on_all([&](Channels& rank) {
      const auto report = rank.run(make(rank));
      ASSERT_TRUE(report.ok()) << report.status().c_str();
    });
    const auto [datagrams, exact] = rounds();
    EXPECT_EQ(datagrams + exact, 1u);
    return datagrams == 1;
  }

  std::vector<std::unique_ptr<Channels>> ranks_;
  std::pair<std::uint64_t, std::uint64_t> rounds_;
};

TEST_F(TwoChannels, CarryWhatIsExactInBothHalvesApartFromTheRest) {
  std::vector<std::vector<float>> data(kSize, std::vector<float>(100, 1.0f));
  const auto reduce = [&](const Delivery& delivery, Delivery::Kind spread) {
    return rides_with_datagrams([&, delivery, spread](Channels& rank) {
      return all_reduce(data[rank.rank()], delivery, spread);
    });
  };
  EXPECT_FALSE(reduce(exact(), Delivery::Kind::exact));
  EXPECT_TRUE(reduce(best_effort(10s), Delivery::Kind::exact));
  EXPECT_TRUE(reduce(bounded(0.1, 10s), Delivery::Kind::exact));
  EXPECT_TRUE(reduce(best_effort(10s), Delivery::Kind::best_effort));
  EXPECT_FALSE(rides_with_datagrams([](Channels&) {
    return OperationSpec{.kind = OperationKind::barrier,
                         .input = {nullptr, 0, DataType::u8},
                         .output = {nullptr, 0, DataType::u8}};
  }));
}

TEST_F(TwoChannels, NameTheirTransports) {
  EXPECT_EQ(ranks_[0]->datagrams().kind(), TransportKind::udp);
  EXPECT_EQ(ranks_[0]->exact().kind(), TransportKind::ucx);
}

TEST_F(TwoChannels, WorkAtTheSameTimeForTwoThreadsOfARank) {
  on_all([](Channels& rank) {
    const auto repeat = [&rank](const Delivery& delivery, float start) {
      for (int i = 0; i < 200; ++i) {
        std::vector<float> data(3000, start + static_cast<float>(i + rank.rank()));
        const auto report = rank.run(all_reduce(data, delivery));
        ASSERT_TRUE(report.ok()) << report.status().c_str();
        ASSERT_THAT(data, Each(start + static_cast<float>(i) + 1.5f)) << i;
      }
    };
    std::thread lossy([&] { repeat(best_effort(10s), 1000.0f); });
    repeat(exact(), 0.0f);
    lossy.join();
  });
  EXPECT_EQ(rounds(), (std::pair<std::uint64_t, std::uint64_t>(200, 200)));
}

TEST_F(TwoChannels, OneThreadWaitsForOperationsOfBothInAnyOrder) {
  on_all([](Channels& rank) {
    constexpr int kInFlight = 21;  // fewer than the collectives that one channel may have open
    std::vector<std::vector<float>> data;
    std::vector<std::shared_ptr<WorkState>> works;
    for (int i = 0; i < kInFlight; ++i) data.emplace_back(500, static_cast<float>(i));
    for (int i = 0; i < kInFlight; ++i)
      works.push_back(rank.start(all_reduce(data[i], i % 3 == 0 ? best_effort(10s) : exact())));
    for (int i = kInFlight; i-- > 0;) {
      const auto report = driving::Driver::wait(*works[i]);
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      EXPECT_THAT(data[i], Each(static_cast<float>(i)));
    }
  });
}

TEST_F(TwoChannels, FinishWhileNobodyWaits) {
  std::vector<std::vector<float>> data(2 * kSize, std::vector<float>(1000, 1.0f));
  std::vector<std::shared_ptr<WorkState>> works;
  for (int i = 0; i < 2 * kSize; ++i) {
    Channels& rank = *ranks_[i / 2];
    works.push_back(rank.start(all_reduce(data[i], i % 2 == 0 ? exact() : best_effort(10s))));
  }
  for (const auto& work : works) {
    while (!work->done) std::this_thread::yield();
  }
}

TEST_F(TwoChannels, ClosingCancelsWhatIsInFlightOnBoth) {
  std::vector<float> one(1000, 1.0f);
  std::vector<float> two(1000, 1.0f);
  const auto lossy = ranks_[0]->start(all_reduce(one, best_effort(60s)));
  const auto whole = ranks_[0]->start(all_reduce(two, exact(60s)));
  ranks_[0].reset();
  for (const auto& work : {lossy, whole}) {
    EXPECT_TRUE(work->done);
    EXPECT_EQ(work->request.status.code(), StatusCode::kCancelled);
  }
}

}  // namespace
}  // namespace leeway::internal
