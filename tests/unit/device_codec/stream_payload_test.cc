// Tests calls for which streams wait, and whose elements kernels encode, sum and decode on the
// driver double. All bits must be those of the same calls on host memory.
#include "device_codec/stream_payload.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "device/stager.h"
#include "leeway/communicator.h"
#include "support/device_memory.h"
#include "support/host_kernels.h"
#include "support/seeds.h"
#include "unit/codec/mixed_values.h"
#include "unit/device/double.h"
#include "unit/device_codec/formats_on_devices.h"

namespace leeway::device_codec {
namespace {

namespace cuda = device::cuda;

constexpr int kRanks = 3;
constexpr std::size_t kPart = 72'064;  // elements of a step: two chunks for each rank
constexpr std::size_t kParts = 2;
constexpr std::size_t kElements = kPart * kParts - 13;
constexpr int kCalls = 2;

enum class Kind { all_reduce, reduce_scatter, reduce };

struct Case {
  CollectiveOptions options;
  Kind kind = Kind::all_reduce;
  DataType type = DataType::f32;
  double loss = 0.0;
  bool in_place = true;
  bool graph = false;  // the calls are replays of one graph

  std::size_t part(std::size_t i) const { return std::min(kPart, kElements - i * kPart); }
  std::size_t element() const { return size_of(type); }
  std::size_t blocks() const { return kind == Kind::reduce_scatter ? kRanks : 1; }
  std::size_t bytes() const { return kElements * blocks() * element(); }
};

using Tensors = std::vector<std::vector<std::byte>>;
using RankCall = std::function<void(Communicator&, std::vector<std::byte>& data)>;

// Runs `call` on all ranks. Returns their final data.
Tensors run(const Case& one, const RankCall& call) {
  Options options;
  options.seed = 9;
  options.datagram_bytes = 1472;
  options.faults.loss = one.loss;
  options.faults.seed = 4;
  auto group = Communicator::create_inproc(kRanks, options);
  EXPECT_TRUE(group.ok()) << group.status().text();
  Tensors results(kRanks);
  std::vector<std::thread> threads;
  for (auto& communicator : *group) {
    threads.emplace_back([&] {
      std::vector<std::byte>& data = results[communicator->rank()];
      data =
          tensor_of(one.type, codec::all_of(codec::ValueKind::ordinary, one.bytes() / one.element(),
                                            100u + communicator->rank()));
      call(*communicator, data);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

Work begin(const Case& one, Communicator& communicator, std::size_t count, const void* input,
           void* output, const CollectiveOptions& options) {
  const ConstTensorView whole(input, count * one.blocks(), one.type);
  const TensorView result(output, count, one.type);
  switch (one.kind) {
    case Kind::reduce_scatter:
      return communicator.reduce_scatter_async(whole, result, options);
    case Kind::reduce:
      return communicator.reduce_async(whole, result, 1, options);
    default:
      return communicator.all_reduce_async(whole, result, options);
  }
}

// ---- on host memory ----

// Returns part `i` of all blocks, end to end.
std::vector<std::byte> gathered(const Case& one, std::span<const std::byte> data, std::size_t i) {
  std::vector<std::byte> part;
  for (std::size_t block = 0; block < one.blocks(); ++block) {
    const auto rows = data.subspan((block * kElements + i * kPart) * one.element());
    part.insert(part.end(), rows.begin(), rows.begin() + one.part(i) * one.element());
  }
  return part;
}

void call_on_host(const Case& one, Communicator& communicator, std::vector<std::byte>& data) {
  for (int call = 0; call < kCalls; ++call) {
    for (std::size_t i = 0; i < kParts; ++i) {
      const std::vector<std::byte> input = gathered(one, data, i);
      std::vector<std::byte> output(one.part(i) * one.element());
      const auto report =
          begin(one, communicator, one.part(i), input.data(), output.data(), one.options).wait();
      EXPECT_TRUE(report.ok()) << report.status().text();
      if (one.kind == Kind::reduce && communicator.rank() != 1) continue;
      const bool block = one.kind == Kind::reduce_scatter && one.in_place;
      const std::size_t at = (block ? communicator.rank() * kElements : 0) + i * kPart;
      std::copy(output.begin(), output.end(),
                data.begin() + static_cast<std::ptrdiff_t>(at * one.element()));
    }
  }
}

// ---- on devices ----

const Kernels& kernels_of_double() {
  static const Kernels kernels = [] {
    EXPECT_TRUE(register_host_kernels(::dlopen(CUDA_DOUBLE, RTLD_NOW)));
    static constexpr std::byte kImage[] = {std::byte{1}};
    return Kernels::load(device::the_driver(), kImage).value();
  }();
  return kernels;
}

device::Stager& stager() {
  // The ring is smaller than a call, so a call's steps wait for each other. It is never freed,
  // because streams write to it.
  static auto* const one = new device::Stager(device::the_driver(), std::size_t{256} << 10);
  return *one;
}

device::Step step_of(const Case& one, Communicator& communicator, std::byte* input,
                     std::byte* output, std::size_t i) {
  const std::size_t count = one.part(i);
  const bool owns = one.kind != Kind::reduce || communicator.rank() == 1;
  const StreamPayload::Call call{
      .codec = one.options.codec,
      .type = one.type,
      .size = kRanks,
      .elements = count * one.blocks(),
      .block_elements = !owns ? 0
                        : one.kind == Kind::all_reduce
                            ? std::max(count / kRanks, kPacketElementsMax)
                            : count,
      .spreads = one.kind == Kind::all_reduce,
      .multiprocessors = 2,
      .input = input + i * kPart * one.element(),
      .input_pitch = one.blocks() > 1 ? kElements * one.element() : 0,
      .output = output + i * kPart * one.element()};
  const auto payload = std::make_shared<StreamPayload>(
      kernels_of_double(), call,
      [&one, &communicator, count](const std::shared_ptr<StreamPayload>& of_run,
                                   const std::function<void(bool)>& ended) {
        CollectiveOptions options = one.options;
        options.source = of_run.get();
        options.sink = of_run.get();
        auto work =
            std::make_shared<Work>(begin(one, communicator, count, nullptr, nullptr, options));
        work->on_done([work, of_run, ended] {
          const auto report = work->wait();
          EXPECT_TRUE(report.ok()) << report.status().text();
          ended(report.ok());
        });
      });
  device::Step step;
  step.staging_bytes = payload->staging_bytes();
  step.kernels = payload;
  return step;
}

void call_on_device(const Case& one, Communicator& communicator, std::vector<std::byte>& data) {
  const device::Driver& driver = device::the_driver();
  const auto lane = stager().open(communicator.rank()).value();
  const device::ContextScope scope(driver, lane->device().context());
  cuda::Stream stream = nullptr;
  ASSERT_EQ(driver.call.cuStreamCreateWithPriority(&stream, 1, 0), cuda::kSuccess);
  const DeviceMemory input(driver, data.size());
  const DeviceMemory apart(driver, data.size());
  input.put(data);
  apart.put(data);
  std::byte* output = one.in_place ? input.data() : apart.data();
  if (one.kind == Kind::reduce_scatter && one.in_place)
    output += communicator.rank() * kElements * one.element();
  device::Transfer transfer{lane, {stream}, {}};
  for (std::size_t i = 0; i < kParts; ++i)
    transfer.steps.push_back(step_of(one, communicator, input.data(), output, i));
  using device::of_double;
  if (one.graph) {
    ASSERT_EQ(of_double<cuda::Code (*)(cuda::Stream, int)>("cuStreamBeginCapture")(stream, 0),
              cuda::kSuccess);
  }
  for (int call = 0; call < (one.graph ? 1 : kCalls); ++call) {
    const auto enqueued = stager().enqueue({&transfer, 1});
    ASSERT_TRUE(enqueued.ok()) << enqueued.status().text();
    EXPECT_EQ(*enqueued, one.graph);
  }
  if (one.graph) {
    cuda::Graph graph = nullptr;
    ASSERT_EQ(
        of_double<cuda::Code (*)(cuda::Stream, cuda::Graph*)>("cuStreamEndCapture")(stream, &graph),
        cuda::kSuccess);
    for (int call = 0; call < kCalls; ++call)
      of_double<cuda::Code (*)(cuda::Graph, cuda::Stream)>("cuGraphLaunch")(graph, stream);
  }
  ASSERT_EQ(driver.call.cuStreamSynchronize(stream), cuda::kSuccess);
  const bool own_only = one.kind == Kind::reduce && communicator.rank() != 1;
  (one.in_place || own_only ? input : apart).get(data);
}

class StreamPayloadTest : public ::testing::TestWithParam<int> {
 protected:
  StreamPayloadTest() { device::configure(5, GetParam(), 1); }

  static void expect_same(const Case& one) {
    // Out of place, each call must have the first input, so the calls on host memory copy it.
    const Tensors plain = run(one, [&](Communicator& communicator, auto& data) {
      if (one.in_place) return call_on_host(one, communicator, data);
      const std::vector<std::byte> input = data;
      for (int call = 0; call < kCalls; ++call) {
        for (std::size_t i = 0; i < kParts; ++i) {
          const std::vector<std::byte> part = gathered(one, input, i);
          EXPECT_TRUE(begin(one, communicator, one.part(i), part.data(),
                            data.data() + i * kPart * one.element(), one.options)
                          .wait()
                          .ok());
        }
      }
    });
    const Tensors on_devices = run(one, [&](Communicator& communicator, auto& data) {
      call_on_device(one, communicator, data);
    });
    for (Rank rank = 0; rank < kRanks; ++rank)
      EXPECT_TRUE(plain[rank] == on_devices[rank])
          << to_string(one.options.codec) << ", rank " << rank;
  }

  static Case exact_with(const char* codec) {
    Case one;
    one.options.delivery = exact(std::chrono::seconds(60));
    one.options.codec = parse_codec(codec).value();
    return one;
  }
};

INSTANTIATE_TEST_SUITE_P(Streams, StreamPayloadTest, ::testing::Values(8, 1), [](const auto& one) {
  return one.param == 1 ? "OneConnection" : "Connections";
});

TEST_P(StreamPayloadTest, AllReduceHasTheBitsOfHostMemory) {
  constexpr std::array kCodecs = {"nvfp4", "bf16:nearest", "fp8_e4m3_block"};
  for (int i = 0; i < leeway::testing::seeds(1, 3); ++i) expect_same(exact_with(kCodecs[i]));
}

TEST_P(StreamPayloadTest, AllReduceOutOfPlaceOnSixteenBitTensors) {
  Case one = exact_with("nvfp4");
  one.type = DataType::bf16;
  one.options.op = ReduceOp::avg;
  one.in_place = false;
  expect_same(one);
}

TEST_P(StreamPayloadTest, ReduceScatterReadsBlocksFarFromEachOther) {
  Case one = exact_with("mxfp4");
  one.kind = Kind::reduce_scatter;
  expect_same(one);
}

TEST_P(StreamPayloadTest, ReduceWritesToTheRootAlone) {
  Case one = exact_with("nvfp4");
  one.kind = Kind::reduce;
  expect_same(one);
}

TEST_P(StreamPayloadTest, LossIsRepairedOrRescaled) {
  Case one = exact_with("nvfp4");
  one.loss = 0.1;
  expect_same(one);
  one.options.delivery = best_effort(std::chrono::seconds(60));
  one.options.estimator = Estimator::stratified;
  expect_same(one);
}

TEST_P(StreamPayloadTest, EveryReplayOfAGraphIsANewCall) {
  Case one = exact_with("nvfp4");
  one.graph = true;
  expect_same(one);
}

// The network never begins, so only end() can free the stream. Nothing may be written.
TEST_P(StreamPayloadTest, StreamOfAnEndedLaneGoesOn) {
  const device::Driver& driver = device::the_driver();
  const auto lane = stager().open(0).value();
  const device::ContextScope scope(driver, lane->device().context());
  cuda::Stream stream = nullptr;
  ASSERT_EQ(driver.call.cuStreamCreateWithPriority(&stream, 1, 0), cuda::kSuccess);
  const std::vector<std::byte> values = tensor_of(DataType::f32, std::vector<float>(kPart, 2.5f));
  const DeviceMemory memory(driver, values.size());
  memory.put(values);
  const auto payload = std::make_shared<StreamPayload>(
      kernels_of_double(),
      StreamPayload::Call{.codec = Codec::nvfp4,
                          .size = kRanks,
                          .elements = kPart,
                          .block_elements = kPacketElementsMax,
                          .input = memory.data(),
                          .output = memory.data()},
      [](const std::shared_ptr<StreamPayload>&, const std::function<void(bool)>& ended) {
        ended(false);  // as an aborted communicator does
      });
  device::Transfer one{lane, {stream}, {}};
  for (int i = 0; i < 3; ++i) {
    device::Step& step = one.steps.emplace_back();
    step.staging_bytes = payload->staging_bytes();
    step.kernels = payload;
  }
  ASSERT_TRUE(stager().enqueue({&one, 1}).ok());
  EXPECT_EQ(driver.call.cuStreamSynchronize(stream), cuda::kSuccess);
  stager().end(*lane);
  ASSERT_TRUE(stager().enqueue({&one, 1}).ok());
  EXPECT_EQ(driver.call.cuStreamSynchronize(stream), cuda::kSuccess);
  EXPECT_EQ(memory.get(), values);
}

TEST(StreamPayloadSupports, SumsWithKernels) {
  const auto supports = [](const char* codec, DataType type, ReduceOp op, int size) {
    return StreamPayload::supports(parse_codec(codec).value(), type, op, size);
  };
  EXPECT_TRUE(supports("nvfp4", DataType::f32, ReduceOp::sum, 2));
  EXPECT_TRUE(supports("mxfp4", DataType::bf16, ReduceOp::avg, 64));
  EXPECT_FALSE(supports("nvfp4", DataType::f32, ReduceOp::sum, 65)) << "one launch adds up 64";
  EXPECT_FALSE(supports("nvfp4", DataType::f32, ReduceOp::sum, 1)) << "there is no network";
  EXPECT_FALSE(supports("nvfp4", DataType::f32, ReduceOp::max, 2));
  EXPECT_FALSE(supports("nvfp4", DataType::i32, ReduceOp::sum, 2));
  EXPECT_FALSE(supports("native", DataType::f32, ReduceOp::sum, 2)) << "a copy does it";
  EXPECT_FALSE(supports("bf16", DataType::bf16, ReduceOp::sum, 2)) << "a copy does it";
  EXPECT_FALSE(supports("automatic", DataType::f32, ReduceOp::sum, 2));
  EXPECT_FALSE(supports("nvfp4:rotate", DataType::f32, ReduceOp::sum, 2));
}

}  // namespace
}  // namespace leeway::device_codec
