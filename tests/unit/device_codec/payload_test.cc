// Tests calls whose elements lie in device memory and are encoded, summed and decoded by kernels on
// the driver double. All bits must be those of the call on host memory.
#include "device_codec/payload.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "leeway/communicator.h"
#include "support/device_memory.h"
#include "support/host_kernels.h"
#include "unit/codec/mixed_values.h"
#include "unit/device/double.h"
#include "unit/device_codec/formats_on_devices.h"

namespace leeway::device_codec {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kElements = 100'003;
constexpr int kCalls = 2;  // one after the other with one payload

using Results = std::vector<std::vector<std::byte>>;

std::vector<std::byte> input_of(Rank rank, DataType type) {
  return tensor_of(type, codec::all_of(codec::ValueKind::ordinary, kElements, 100u + rank));
}

// The calls of one rank, with its communicator.
using RankCall = std::function<Result<CollectiveReport>(Communicator&, std::vector<std::byte>&)>;

Results run(double loss, DataType type, const RankCall& call) {
  Options options;
  options.seed = 9;
  options.faults.loss = loss;
  options.faults.seed = 4;
  auto group = Communicator::create_inproc(kRanks, options);
  EXPECT_TRUE(group.ok()) << group.status().text();
  Results results(kRanks);
  std::vector<std::thread> threads;
  for (auto& communicator : *group) {
    threads.emplace_back([&] {
      std::vector<std::byte>& data = results[communicator->rank()];
      data = input_of(communicator->rank(), type);
      const auto report = call(*communicator, data);
      EXPECT_TRUE(report.ok()) << report.status().text();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

const Kernels& kernels_of_double() {
  static const Kernels kernels = [] {
    EXPECT_TRUE(register_host_kernels(::dlopen(CUDA_DOUBLE, RTLD_NOW)));
    static constexpr std::byte kImage[] = {std::byte{1}};
    return Kernels::load(device::the_driver(), kImage).value();
  }();
  return kernels;
}

// Makes one rank's calls on the device with that rank's number.
Result<CollectiveReport> reduce_on_device(Communicator& communicator, CollectiveOptions options,
                                          DataType type, std::vector<std::byte>& data) {
  const device::Driver& driver = device::the_driver();
  const auto context = device::context_of(driver, communicator.rank());
  const device::ContextScope scope(driver, context->context);
  const DeviceMemory elements(driver, data.size());
  elements.put(data);
  DevicePayload payload(driver, kernels_of_double(), context->context);
  options.source = &payload;
  options.sink = &payload;
  Result<CollectiveReport> report = CollectiveReport();
  for (int call = 0; report.ok() && call < kCalls; ++call) {
    payload.set_tensors({.input = elements.data(), .output = elements.data()});
    report = communicator
                 .all_reduce_async({nullptr, kElements, type}, {nullptr, kElements, type}, options)
                 .wait();
    EXPECT_TRUE(payload.status().ok()) << payload.status().text();
  }
  elements.get(data);
  return report;
}

void expect_same(const CollectiveOptions& options, DataType type, double loss) {
  const Results plain = run(loss, type, [&](Communicator& communicator, auto& data) {
    Result<CollectiveReport> report = CollectiveReport();
    const TensorView tensor(data.data(), kElements, type);
    for (int call = 0; report.ok() && call < kCalls; ++call)
      report = communicator.all_reduce(tensor, tensor, options);
    return report;
  });
  const Results on_devices = run(loss, type, [&](Communicator& communicator, auto& data) {
    return reduce_on_device(communicator, options, type, data);
  });
  for (Rank rank = 0; rank < kRanks; ++rank)
    EXPECT_TRUE(plain[rank] == on_devices[rank]) << to_string(options.codec) << ", rank " << rank;
}

TEST(DevicePayload, HasTheBitsOfACallOnHostMemory) {
  CollectiveOptions options;
  options.delivery = exact(std::chrono::seconds(60));
  for (const char* codec : {"bf16", "nvfp4", "mxfp4:nearest", "mxfp8_e4m3", "fp8_e4m3_block"}) {
    options.codec = parse_codec(codec).value();
    expect_same(options, DataType::f32, 0.0);
  }
}

TEST(DevicePayload, HasTheBitsOfACallOnSixteenBitTensors) {
  CollectiveOptions options;
  options.delivery = exact(std::chrono::seconds(60));
  options.codec = Codec::nvfp4;
  options.op = ReduceOp::avg;
  expect_same(options, DataType::bf16, 0.0);
}

TEST(DevicePayload, HasTheBitsOfACallUnderInjectedLoss) {
  CollectiveOptions options;
  options.delivery = exact(std::chrono::seconds(60));
  options.codec = Codec::nvfp4;
  expect_same(options, DataType::f32, 0.1);
}

TEST(DevicePayload, RefusesWhatHasNoKernels) {
  for (const auto& [codec, op] :
       {std::pair(Codec::int8, ReduceOp::sum), std::pair(Codec::native, ReduceOp::sum),
        std::pair(Codec::native, ReduceOp::max)}) {
    CollectiveOptions options;
    options.codec = codec;
    options.op = op;
    auto group = Communicator::create_inproc(2);
    ASSERT_TRUE(group.ok());
    std::vector<std::byte> data = input_of(0, DataType::f32);
    const auto report = reduce_on_device(*group->front(), options, DataType::f32, data);
    EXPECT_EQ(report.status().code(), StatusCode::kUnsupported) << report.status().text();
  }
}

}  // namespace
}  // namespace leeway::device_codec
