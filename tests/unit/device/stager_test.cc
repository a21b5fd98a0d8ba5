#include "device/stager.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

#include "unit/device/double.h"

namespace leeway::device {
namespace {

constexpr std::size_t kRing = std::size_t{1} << 20;

using Done = std::function<void()>;

// Stands for the network: ends the network part of each step on a thread of its own.
class Network {
 public:
  ~Network() {
    const std::lock_guard lock(mutex_);
    for (std::thread& one : threads_) one.join();
  }
  // Adds one to every byte, later and on a thread of its own.
  auto add_one(std::size_t bytes) {
    return [this, bytes](std::byte* staging, const Done& done) {
      forbid();
      const std::lock_guard lock(mutex_);  // the step may end before its thread is recorded
      threads_.emplace_back([staging, bytes, done] {
        for (std::size_t i = 0; i < bytes; ++i)
          staging[i] = static_cast<std::byte>(static_cast<unsigned>(staging[i]) + 1);
        done();
      });
    };
  }
  // From now on the progress thread must not call CUDA: the double ends the program if it does.
  static void forbid() { of_double<void (*)()>("cuda_double_forbid_calls")(); }

 private:
  std::mutex mutex_;
  std::vector<std::thread> threads_;
};

// A device's number of connections, and whether its streams can wait for values.
struct Streams {
  int connections;
  int stream_waits;
};

class StagerTest : public testing::TestWithParam<Streams> {
 protected:
  StagerTest()
      : driver_(the_driver()),
        scope_(driver_, context_of(driver_, 0)->context),
        stager_(*new Stager(driver_, kRing)) {  // streams write to its memory
    configure(3, GetParam().connections, GetParam().stream_waits);
  }

  cuda::Stream stream() {
    cuda::Stream made = nullptr;
    EXPECT_EQ(driver_.call.cuStreamCreateWithPriority(&made, 1, 0), cuda::kSuccess);
    return made;
  }
  cuda::Address memory(std::size_t bytes) {
    cuda::Address made = 0;
    EXPECT_EQ(driver_.call.cuMemAlloc(&made, bytes), cuda::kSuccess);
    return made;
  }
  std::shared_ptr<Lane> lane() { return stager_.open(0).value(); }
  std::vector<unsigned char> bytes_at(cuda::Address from, std::size_t bytes, cuda::Stream on) {
    std::vector<unsigned char> out(bytes);
    copy_now(address(out.data()), from, bytes, on);
    return out;
  }
  void fill(cuda::Address to, const std::vector<unsigned char>& values, cuda::Stream on) {
    copy_now(to, address(values.data()), values.size(), on);
  }
  // A transfer in place that adds one to every byte, in steps of `step` bytes.
  Transfer in_place(Network& network, const std::shared_ptr<Lane>& lane, cuda::Stream on,
                    cuda::Address at, std::size_t bytes, std::size_t step) {
    Transfer out{lane, {on}, {}};
    for (std::size_t first = 0; first < bytes; first += step) {
      const Copy copy{at + first, 0, step};
      out.steps.push_back({step, {copy}, {copy}, network.add_one(step)});
    }
    return out;
  }

  const Driver& driver_;
  const ContextScope scope_;
  Stager& stager_;
};

INSTANTIATE_TEST_SUITE_P(Streams, StagerTest,
                         testing::Values(Streams{8, 1}, Streams{1, 1}, Streams{8, 0}),
                         [](const auto& one) {
                           return std::string(one.param.connections == 1 ? "OneConnection"
                                                                         : "Connections") +
                                  (one.param.stream_waits == 1 ? "" : "WithoutWaits");
                         });

TEST_P(StagerTest, OperationGoesThroughStaging) {
  Network network;
  const cuda::Stream on = stream();
  const cuda::Address at = memory(5000);
  fill(at, std::vector<unsigned char>(5000, 4), on);
  const Transfer one = in_place(network, lane(), on, at, 5000, 5000);
  ASSERT_TRUE(stager_.enqueue({&one, 1}).ok());
  EXPECT_EQ(bytes_at(at, 5000, on), std::vector<unsigned char>(5000, 5));
}

TEST_P(StagerTest, OperationMayBeLongerThanTheRing) {
  Network network;
  const cuda::Stream on = stream();
  constexpr std::size_t kBytes = 6 * kRing;
  const cuda::Address at = memory(kBytes);
  fill(at, std::vector<unsigned char>(kBytes, 1), on);
  const auto order = lane();
  for (int i = 0; i < 2; ++i) {
    const Transfer one = in_place(network, order, on, at, kBytes, kRing / 4);
    ASSERT_TRUE(stager_.enqueue({&one, 1}).ok());
  }
  EXPECT_EQ(bytes_at(at, kBytes, on), std::vector<unsigned char>(kBytes, 3));
}

TEST_P(StagerTest, RowsAreGatheredAndScattered) {
  Network network;
  const cuda::Stream on = stream();
  const cuda::Address at = memory(12);
  fill(at, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, on);
  const Copy columns{at + 1, 0, 2, 3, 4};  // bytes 1 and 2 of each row of 4
  const Transfer one{lane(), {on}, {{6, {columns}, {columns}, network.add_one(6)}}};
  ASSERT_TRUE(stager_.enqueue({&one, 1}).ok());
  EXPECT_EQ(bytes_at(at, 12, on),
            (std::vector<unsigned char>{0, 2, 3, 3, 4, 6, 7, 7, 8, 10, 11, 11}));
}

// Two ranks share a thread and a stream, and need each other's steps. Their transfers are longer
// than the ring, so neither rank may take all of it.
TEST_P(StagerTest, LanesOfAGroupGoSideBySide) {
  constexpr std::size_t kStep = kRing / 4;
  constexpr std::size_t kSteps = 12;
  struct Meeting {
    std::mutex mutex;
    std::vector<Done> first = std::vector<Done>(kSteps);
  };
  const auto meeting = std::make_shared<Meeting>();
  const cuda::Stream on = stream();
  std::vector<Transfer> group;
  for (int rank = 0; rank < 2; ++rank) {
    const cuda::Address at = memory(kStep);
    Transfer one{lane(), {on}, {}};
    for (std::size_t i = 0; i < kSteps; ++i) {
      one.steps.push_back(
          {kStep, {{at, 0, kStep}}, {{at, 0, kStep}}, [meeting, i](std::byte*, const Done& done) {
             const std::lock_guard lock(meeting->mutex);
             Done& other = meeting->first[i];
             if (other == nullptr) {
               other = done;
             } else {
               other();
               done();
             }
           }});
    }
    group.push_back(std::move(one));
  }
  ASSERT_TRUE(stager_.enqueue(group).ok());
  EXPECT_EQ(driver_.call.cuStreamSynchronize(on), cuda::kSuccess);
}

// Plays steps of two ranks whose kernels wait for each other: sums need both inputs, and outputs
// need both sums.
class Exchange {
 public:
  explicit Exchange(std::size_t steps) : pairs_(steps) {}
  ~Exchange() { thread_.join(); }

  // A step of one rank. Sets `enqueued` to the number of kernels that were enqueued.
  std::shared_ptr<StepKernels> step(std::size_t index, int& enqueued) {
    struct Kernels final : StepKernels {
      Kernels(Exchange& owner, std::size_t at, int& count)
          : exchange(owner), index(at), enqueued(count) {}
      Status encode(const Site&, cuda::Stream) override { return counted(); }
      Status reduce(const Site&, cuda::Stream) override { return counted(); }
      Status decode(const Site&, cuda::Stream) override { return counted(); }
      void run(const Site& site) override { exchange.begin(index, site); }
      Status counted() {
        ++enqueued;
        return Status();
      }
      Exchange& exchange;
      const std::size_t index;
      int& enqueued;
    };
    return std::make_shared<Kernels>(*this, index, enqueued);
  }

 private:
  void begin(std::size_t index, const Site& site) {
    site.signal.tell(&Words::begun);
    const std::lock_guard lock(mutex_);
    pairs_[index].push_back(site.signal);
  }
  // Plays the network for all steps.
  void work() {
    for (std::size_t done = 0; done < pairs_.size(); std::this_thread::yield()) {
      const std::lock_guard lock(mutex_);
      const std::vector<Signal>& pair = pairs_[done];
      if (pair.size() < 2) continue;
      const auto both = [&](Word word) { return pair[0].is(word) && pair[1].is(word); };
      if (!both(&Words::ready)) continue;
      for (const Signal& one : pair) one.tell(&Words::landed);
      if (!both(&Words::reduced)) continue;
      for (const Signal& one : pair) one.finish();
      ++done;
    }
  }

  std::mutex mutex_;
  std::vector<std::vector<Signal>> pairs_;
  std::thread thread_{[this] { work(); }};
};

TEST_P(StagerTest, KernelsOfLanesGoSideBySide) {
  if (GetParam().stream_waits == 0) GTEST_SKIP() << "kernels need streams that wait";
  constexpr std::size_t kSteps = 12;
  Exchange exchange(kSteps);
  const cuda::Stream on = stream();
  int enqueued = 0;
  std::vector<Transfer> group;
  for (int rank = 0; rank < 2; ++rank) {
    Transfer& one = group.emplace_back(Transfer{lane(), {on}, {}});
    for (std::size_t i = 0; i < kSteps; ++i) {
      Step& step = one.steps.emplace_back();
      step.staging_bytes = kRing / 4;
      step.kernels = exchange.step(i, enqueued);
    }
  }
  ASSERT_TRUE(stager_.enqueue(group).ok());
  EXPECT_EQ(enqueued, 2 * 3 * static_cast<int>(kSteps));
  EXPECT_EQ(driver_.call.cuStreamSynchronize(on), cuda::kSuccess);
}

TEST_P(StagerTest, WhatCannotBeCutGetsALongerRing) {
  Network network;
  const cuda::Stream on = stream();
  constexpr std::size_t kBytes = 3 * kRing;
  const cuda::Address at = memory(kBytes);
  fill(at, std::vector<unsigned char>(kBytes, 9), on);
  const Transfer one = in_place(network, lane(), on, at, kBytes, kBytes);
  ASSERT_TRUE(stager_.enqueue({&one, 1}).ok());
  EXPECT_EQ(bytes_at(at, kBytes, on), std::vector<unsigned char>(kBytes, 10));
}

TEST_P(StagerTest, ManyStepsOfOneLaneWaitForRoom) {
  Network network;
  const cuda::Stream on = stream();
  constexpr std::size_t kBytes = 3 * kStepsInFlightMax;
  const cuda::Address at = memory(kBytes);
  fill(at, std::vector<unsigned char>(kBytes, 0), on);
  const Transfer one = in_place(network, lane(), on, at, kBytes, 1);
  ASSERT_TRUE(stager_.enqueue({&one, 1}).ok());
  EXPECT_EQ(bytes_at(at, kBytes, on), std::vector<unsigned char>(kBytes, 1));
}

TEST_P(StagerTest, AllStreamsOfAnOperationWaitForIt) {
  Network network;
  const cuda::Stream first = stream();
  const cuda::Stream second = stream();
  const cuda::Address at = memory(64);
  fill(at, std::vector<unsigned char>(64, 1), second);
  Transfer one = in_place(network, lane(), first, at, 64, 64);
  one.streams = {first, second};
  ASSERT_TRUE(stager_.enqueue({&one, 1}).ok());
  EXPECT_EQ(bytes_at(at, 64, second), std::vector<unsigned char>(64, 2));
}

// The second step's input never arrives in staging, so its stream waits until end().
TEST_P(StagerTest, EndFreesStreams) {
  if (GetParam().stream_waits == 0) GTEST_SKIP() << "the call itself waits";
  const cuda::Stream on = stream();
  const auto order = lane();
  const cuda::Address at = memory(64);
  const Copy copy{at, 0, 64};
  std::mutex mutex;
  std::condition_variable changed;
  Done network_ends;
  const auto keep = [&](std::byte*, const Done& done) {
    const std::lock_guard lock(mutex);
    network_ends = done;
    changed.notify_all();
  };
  const Transfer first{order, {on}, {{64, {copy}, {copy}, keep}}};
  const Transfer second{order, {on}, {{64, {copy}, {copy}, keep}}};
  ASSERT_TRUE(stager_.enqueue({&first, 1}).ok());
  ASSERT_TRUE(stager_.enqueue({&second, 1}).ok());
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return network_ends != nullptr; });
  }
  stager_.end(*order);
  network_ends();  // as an aborted communicator does
  EXPECT_EQ(driver_.call.cuStreamSynchronize(on), cuda::kSuccess);
  // Later transfers on the ended lane must neither wait nor begin.
  const Transfer later{order, {on}, {{64, {copy}, {copy}, [](std::byte*, const Done&) {
                                        ADD_FAILURE() << "a step of an ended lane";
                                      }}}};
  ASSERT_TRUE(stager_.enqueue({&later, 1}).ok());
  EXPECT_EQ(driver_.call.cuStreamSynchronize(on), cuda::kSuccess);
}

TEST_P(StagerTest, WhatNeedsTooMuchAtOnceIsRefused) {
  const Transfer wrong{
      lane(),
      {stream()},
      {{Device::kRingBytesMax + 1, {}, {}, [](std::byte*, const Done& done) { done(); }}}};
  const auto refused = stager_.enqueue({&wrong, 1});
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
}

// Tests graphs, which need streams that can wait.
class StagerGraphTest : public StagerTest {
 protected:
  cuda::Code begin(cuda::Stream on) {
    return of_double<cuda::Code (*)(cuda::Stream, int)>("cuStreamBeginCapture")(on, 0);
  }
  cuda::Graph end(cuda::Stream on) {
    cuda::Graph graph = nullptr;
    EXPECT_EQ(
        of_double<cuda::Code (*)(cuda::Stream, cuda::Graph*)>("cuStreamEndCapture")(on, &graph),
        cuda::kSuccess);
    return graph;
  }
  void launch(cuda::Graph graph, cuda::Stream on) {
    EXPECT_EQ(of_double<cuda::Code (*)(cuda::Graph, cuda::Stream)>("cuGraphLaunch")(graph, on),
              cuda::kSuccess);
  }
  void destroy(cuda::Graph graph) {
    (void)of_double<cuda::Code (*)(cuda::Graph)>("cuGraphDestroy")(graph);
  }
};

INSTANTIATE_TEST_SUITE_P(Streams, StagerGraphTest, testing::Values(Streams{8, 1}, Streams{1, 1}),
                         [](const auto& one) {
                           return one.param.connections == 1 ? "OneConnection" : "Connections";
                         });

TEST_P(StagerGraphTest, EveryReplayIsANewOperation) {
  Network network;
  const cuda::Stream on = stream();
  const cuda::Address at = memory(3000);
  fill(at, std::vector<unsigned char>(3000, 0), on);
  Transfer one = in_place(network, lane(), on, at, 3000, 1000);
  const auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> state = alive;
  one.steps[0].run = [run = one.steps[0].run, alive](std::byte* staging, const Done& done) {
    run(staging, done);
  };
  ASSERT_EQ(begin(on), cuda::kSuccess);
  EXPECT_TRUE(stager_.enqueue({&one, 1}).value());
  const cuda::Graph graph = end(on);
  for (int i = 0; i < 5; ++i) launch(graph, on);
  EXPECT_EQ(bytes_at(at, 3000, on), std::vector<unsigned char>(3000, 5));
  launch(graph, on);
  EXPECT_EQ(bytes_at(at, 3000, on), std::vector<unsigned char>(3000, 6));
  destroy(graph);
  one.steps.clear();
  // The double's thread may use the last launch a little longer.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (state.use_count() > 1 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(state.use_count(), 1) << "what the graph held is still there";
}

TEST_P(StagerGraphTest, CallsAndReplaysKeepTheStreamsOrder) {
  Network network;
  const cuda::Stream on = stream();
  const cuda::Address at = memory(100);
  fill(at, std::vector<unsigned char>(100, 0), on);
  const auto order = lane();
  const Transfer one = in_place(network, order, on, at, 100, 100);
  ASSERT_EQ(begin(on), cuda::kSuccess);
  ASSERT_TRUE(stager_.enqueue({&one, 1}).ok());
  const cuda::Graph graph = end(on);
  // A graph's step is added when the stream reaches it, after the step of the next call.
  launch(graph, on);
  ASSERT_TRUE(stager_.enqueue({&one, 1}).ok());
  launch(graph, on);
  EXPECT_EQ(bytes_at(at, 100, on), std::vector<unsigned char>(100, 3));
  destroy(graph);
}

TEST_P(StagerGraphTest, GroupIsCapturedAsAWhole) {
  Network network;
  const cuda::Stream captured = stream();
  const cuda::Address at = memory(100);
  Transfer one = in_place(network, lane(), captured, at, 100, 100);
  one.streams.push_back(stream());
  ASSERT_EQ(begin(captured), cuda::kSuccess);
  const auto refused = stager_.enqueue({&one, 1});
  EXPECT_EQ(refused.status().code(), StatusCode::kUnsupported);
  destroy(end(captured));
}

}  // namespace
}  // namespace leeway::device
