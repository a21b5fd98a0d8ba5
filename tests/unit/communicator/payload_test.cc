// Tests a source and a sink that other threads work for while the call is in progress, as kernels
// of a device would.
#include "leeway/payload.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "collective/host_payload.h"
#include "leeway/communicator.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using collective::HostPayload;
using collective::HostTensors;

constexpr int kPayloadRanks = 3;
constexpr std::size_t kPayloadElements = 200'003;

std::vector<float> values_of(Rank rank) {
  std::vector<float> values(kPayloadElements);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 37 + rank * 11) % 1009) / 1009.0f - 0.4f;
  return values;
}

// Encodes chunks on one thread and uses arrived ones on another. Notifies the communicator after
// each chunk.
class Workers {
 public:
  Workers(Communicator& communicator, HostPayload& payload)
      : communicator_(communicator), payload_(payload) {
    encoder_ = std::thread([this] {
      for (const PayloadChunk& chunk : payload_.chunks()) {
        payload_.encode(chunk);
        communicator_.notify_payload();
      }
    });
    user_ = std::thread([this] {
      while (!over_.load()) {
        if (payload_.use()) {
          communicator_.notify_payload();
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  ~Workers() {
    over_ = true;
    encoder_.join();
    user_.join();
  }

 private:
  Communicator& communicator_;
  HostPayload& payload_;
  std::atomic<bool> over_{false};
  std::thread encoder_;
  std::thread user_;
};

HostTensors tensors_of(std::vector<float>& data) {
  return {.input = std::span(std::as_const(data)), .output = std::span(data)};
}

using Results = std::vector<std::vector<float>>;

// Makes several all_reduces in turn, with a payload if `elsewhere`. Returns the results of the last
// one.
Results reduce(const CollectiveOptions& base, double loss, bool elsewhere) {
  Options options;
  options.seed = 9;
  options.faults.loss = loss;
  options.faults.seed = 4;
  auto group = Communicator::create_inproc(kPayloadRanks, options);
  EXPECT_TRUE(group.ok()) << group.status().text();
  Results results(kPayloadRanks);
  std::vector<std::thread> threads;
  for (auto& communicator : *group) {
    threads.emplace_back([&] {
      const Rank rank = communicator->rank();
      for (int call = 0; call < 3; ++call) {
        std::vector<float>& data = results[rank] = values_of(rank);
        CollectiveOptions call_options = base;
        HostPayload payload(tensors_of(data));
        if (!elsewhere) {
          const auto report = communicator->all_reduce(std::span(data), call_options);
          ASSERT_TRUE(report.ok()) << report.status().text();
          continue;
        }
        call_options.source = &payload;
        call_options.sink = &payload;
        const TensorView nowhere(nullptr, data.size(), DataType::f32);
        Work work = communicator->all_reduce_async(nowhere, call_options);
        const Workers workers(*communicator, payload);
        const auto report = work.wait();
        ASSERT_TRUE(report.ok()) << report.status().text();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

void expect_same(const CollectiveOptions& options, double loss) {
  const Results plain = reduce(options, loss, false);
  const Results elsewhere = reduce(options, loss, true);
  for (Rank rank = 0; rank < kPayloadRanks; ++rank)
    EXPECT_TRUE(plain[rank] == elsewhere[rank]) << "rank " << rank;
}

TEST(Payload, AnotherThreadEncodesAndAThirdOneSums) {
  CollectiveOptions options;
  for (const char* codec : {"native", "bf16", "nvfp4", "mxfp8_e4m3:rotate"}) {
    options.codec = parse_codec(codec).value();
    expect_same(options, 0.0);
  }
}

TEST(Payload, BitsAreTheSameUnderInjectedLoss) {
  CollectiveOptions options;
  options.codec = Codec::nvfp4;
  expect_same(options, 0.1);
}

// No caller waits, so the background thread drives, and sleeps until a notification.
TEST(Payload, NotifyingWakesTheBackgroundThread) {
  constexpr std::size_t kElements = 5000;  // three datagrams: both ranks own
  std::vector<std::vector<float>> data(2, std::vector<float>(kElements, 1.5f));
  std::vector<std::unique_ptr<HostPayload>> payloads;
  auto group = Communicator::create_inproc(2);
  ASSERT_TRUE(group.ok());
  std::vector<Work> works;
  for (Rank rank = 0; rank < 2; ++rank) {
    payloads.push_back(std::make_unique<HostPayload>(tensors_of(data[rank])));
    CollectiveOptions options;
    options.source = payloads[rank].get();
    options.sink = payloads[rank].get();
    works.push_back(
        (*group)[rank]->all_reduce_async(TensorView(nullptr, kElements, DataType::f32), options));
  }
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(works[0].done());
  const auto until = [&](auto&& done) {
    for (int i = 0; i < 20'000; ++i) {
      if (done()) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  };
  for (Rank rank = 0; rank < 2; ++rank) {
    for (const PayloadChunk& chunk : payloads[rank]->chunks()) payloads[rank]->encode(chunk);
    (*group)[rank]->notify_payload();
  }
  // Each rank gets its own reduced shard and its peer's. The peer's shard may come first, if the
  // peer's contribution to the rank's own shard must be repaired.
  int used = 0;
  EXPECT_TRUE(until([&] {
    for (Rank rank = 0; rank < 2; ++rank) {
      if (!payloads[rank]->use()) continue;
      ++used;
      (*group)[rank]->notify_payload();
    }
    return used == 4;
  }));
  for (Rank rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(until([&] { return works[rank].done(); }));
    EXPECT_EQ(data[rank], std::vector<float>(kElements, 3.0f));
  }
}

TEST(Payload, AbortEndsACallWhoseSourceNeverComes) {
  auto group = Communicator::create_inproc(2);
  ASSERT_TRUE(group.ok());
  std::vector<float> data(1000);
  HostPayload payload(tensors_of(data));
  CollectiveOptions options;
  options.delivery = exact(no_deadline);
  options.source = &payload;
  options.sink = &payload;
  Work work = (*group)[0]->all_reduce_async(TensorView(nullptr, 1000, DataType::f32), options);
  (*group)[0]->abort();
  EXPECT_EQ(work.wait().status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace leeway
