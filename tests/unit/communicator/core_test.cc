// Two carriers behind one communicator: which calls go where, threads, waiting, closing, counters.
#include "communicator/core.h"

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

std::vector<std::unique_ptr<Carrier>> carriers(TransportKind kind, std::uint64_t seed) {
  const transport::InprocOptions inproc;
  auto transports = transport::make_inproc_group(kSize, inproc);
  protocol::EndpointConfig config;
  config.size = kSize;
  config.seed = seed;
  config.datagram_bytes = inproc.datagram_bytes;
  config.window_bytes.assign(kSize, 1u << 20);
  std::vector<std::unique_ptr<Carrier>> all;
  for (Rank rank = 0; rank < kSize; ++rank) {
    config.self = rank;
    all.push_back(std::make_unique<Carrier>(kind, config, std::move(transports[rank]), nullptr));
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

class TwoCarriers : public ::testing::Test {
 protected:
  TwoCarriers() {
    auto main = carriers(TransportKind::udp, 1);
    auto exact = carriers(TransportKind::ucx, 2);
    for (int rank = 0; rank < kSize; ++rank) {
      cores_.push_back(std::make_unique<CommunicatorCore>(Options(), std::move(main[rank])));
      EXPECT_EQ(cores_.back()->exact_transport(), TransportKind::udp);
      cores_.back()->use_for_exact(std::move(exact[rank]));
    }
  }

  template <typename Body>
  void on_all(Body&& body) {
    std::vector<std::thread> threads;
    for (auto& core : cores_) threads.emplace_back([&body, &core] { body(*core); });
    for (auto& thread : threads) thread.join();
  }

  // Rounds that rank 0 opened since the last call, of each carrier.
  std::pair<std::uint64_t, std::uint64_t> rounds() {
    std::map<std::string, std::uint64_t> now;
    for (const auto& [name, value] : cores_[0]->counters()) {
      EXPECT_TRUE(now.emplace(name, value).second) << name << " twice";
    }
    const std::pair<std::uint64_t, std::uint64_t> total(now.at("rounds_opened"),
                                                        now.at("exact_rounds_opened"));
    const auto before = std::exchange(rounds_, total);
    return {total.first - before.first, total.second - before.second};
  }

  // Calls it on all ranks; whether it was the main carrier's.
  bool rides_main(const std::function<OperationSpec(CommunicatorCore&)>& make) {
    (void)rounds();
    on_all([&](CommunicatorCore& core) {
      const auto report = core.run(make(core));
      ASSERT_TRUE(report.ok()) << report.status().c_str();
    });
    const auto [main, exact] = rounds();
    EXPECT_EQ(main + exact, 1u);
    return main == 1;
  }

  std::vector<std::unique_ptr<CommunicatorCore>> cores_;
  std::pair<std::uint64_t, std::uint64_t> rounds_;
};

TEST_F(TwoCarriers, CarryWhatIsExactInBothHalvesApartFromTheRest) {
  std::vector<std::vector<float>> data(kSize, std::vector<float>(100, 1.0f));
  const auto reduce = [&](const Delivery& delivery, Delivery::Kind spread) {
    return rides_main([&, delivery, spread](CommunicatorCore& core) {
      return all_reduce(data[core.rank()], delivery, spread);
    });
  };
  EXPECT_FALSE(reduce(exact(), Delivery::Kind::exact));
  EXPECT_TRUE(reduce(best_effort(10s), Delivery::Kind::exact));
  EXPECT_TRUE(reduce(bounded(0.1, 10s), Delivery::Kind::exact));
  EXPECT_TRUE(reduce(best_effort(10s), Delivery::Kind::best_effort));
  EXPECT_FALSE(rides_main([](CommunicatorCore&) {
    return OperationSpec{.kind = OperationKind::barrier,
                         .input = {nullptr, 0, DataType::u8},
                         .output = {nullptr, 0, DataType::u8}};
  }));
}

TEST_F(TwoCarriers, NameTheirTransports) {
  EXPECT_EQ(cores_[0]->transport(), TransportKind::udp);
  EXPECT_EQ(cores_[0]->exact_transport(), TransportKind::ucx);
}

TEST_F(TwoCarriers, WorkAtTheSameTimeForTwoThreadsOfARank) {
  on_all([](CommunicatorCore& core) {
    const auto repeat = [&core](const Delivery& delivery, float start) {
      for (int i = 0; i < 200; ++i) {
        std::vector<float> data(3000, start + static_cast<float>(i + core.rank()));
        const auto report = core.run(all_reduce(data, delivery));
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

TEST_F(TwoCarriers, OneThreadWaitsForOperationsOfBothInAnyOrder) {
  on_all([](CommunicatorCore& core) {
    constexpr int kInFlight = 21;  // fewer than the collectives that one carrier may have open
    std::vector<std::vector<float>> data;
    std::vector<std::shared_ptr<WorkState>> works;
    for (int i = 0; i < kInFlight; ++i) data.emplace_back(500, static_cast<float>(i));
    for (int i = 0; i < kInFlight; ++i)
      works.push_back(core.submit(all_reduce(data[i], i % 3 == 0 ? best_effort(10s) : exact())));
    for (int i = kInFlight; i-- > 0;) {
      const auto report = works[i]->carrier->wait(*works[i]);
      ASSERT_TRUE(report.ok()) << report.status().c_str();
      EXPECT_THAT(data[i], Each(static_cast<float>(i)));
    }
  });
}

TEST_F(TwoCarriers, FinishWhileNobodyWaits) {
  std::vector<std::vector<float>> data(2 * kSize, std::vector<float>(1000, 1.0f));
  std::vector<std::shared_ptr<WorkState>> works;
  for (int i = 0; i < 2 * kSize; ++i) {
    CommunicatorCore& core = *cores_[i / 2];
    works.push_back(core.submit(all_reduce(data[i], i % 2 == 0 ? exact() : best_effort(10s))));
    works.back()->carrier->nudge();
  }
  for (const auto& work : works) {
    while (!work->done) std::this_thread::yield();
  }
}

TEST_F(TwoCarriers, ClosingCancelsWhatIsInFlightOnBoth) {
  std::vector<float> one(1000, 1.0f);
  std::vector<float> two(1000, 1.0f);
  const auto lossy = cores_[0]->submit(all_reduce(one, best_effort(60s)));
  const auto whole = cores_[0]->submit(all_reduce(two, exact(60s)));
  cores_[0].reset();
  for (const auto& work : {lossy, whole}) {
    EXPECT_TRUE(work->done);
    EXPECT_EQ(work->request.status.code(), StatusCode::kCancelled);
  }
}

}  // namespace
}  // namespace leeway::internal
