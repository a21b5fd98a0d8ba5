// Tests how kernels are loaded and launched. The driver double runs their host versions.
#include "device_codec/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/device_memory.h"
#include "support/host_kernels.h"
#include "unit/codec/mixed_values.h"
#include "unit/device/double.h"
#include "unit/device_codec/formats_on_devices.h"

namespace leeway::device_codec {
namespace {

namespace cuda = device::cuda;

// The image may hold any bytes, because the double looks only at names.
constexpr std::byte kImage[] = {std::byte{1}};

DeviceMemory on_device(std::span<const std::byte> bytes) {
  DeviceMemory memory(device::the_driver(), bytes.size());
  memory.put(bytes);
  return memory;
}

class KernelsOnTheDouble : public testing::Test {
 protected:
  void SetUp() override {
    const auto context = device::context_of(device::the_driver(), 0);
    ASSERT_TRUE(context.ok());
    scope_.emplace(device::the_driver(), context->context);
    ASSERT_TRUE(register_host_kernels(::dlopen(CUDA_DOUBLE, RTLD_NOW)));
    auto loaded = Kernels::load(device::the_driver(), kImage);
    ASSERT_TRUE(loaded.ok()) << loaded.status().text();
    kernels_ = *loaded;
  }

  std::optional<device::ContextScope> scope_;
  std::optional<Kernels> kernels_;
};

TEST_F(KernelsOnTheDouble, EncodeOnAStreamWhatTheProcessorWould) {
  for (const CodecOptions& options : every_option_on_devices()) {
    const codec::Format format = codec::format_of(options, DataType::bf16);
    if (format.identity()) continue;
    const auto tensor = tensor_of(DataType::bf16, codec::mixed(3000, 1));
    const Packets packets = cut(format, 3000, 256);
    const auto expected = defined_packets(format, packets, tensor, kPlace);
    const DeviceMemory elements = on_device(tensor);
    const DeviceMemory out(device::the_driver(), expected.size());
    const EncodeJob job{
        .packets = packets, .elements = elements.data(), .out = out.data(), .place = kPlace};
    ASSERT_TRUE(kernels_->encode(format, job, {}).ok());
    EXPECT_EQ(out.get(), expected) << to_string(options);
  }
}

TEST_F(KernelsOnTheDouble, SumWhatWasEncodedBeforeOnTheStream) {
  const codec::Format format = codec::format_of(Codec::nvfp4, DataType::f32, codec::Purpose::sum);
  const auto values = codec::all_of(codec::ValueKind::ordinary, 2000, 2);
  const Packets packets = cut(format, values.size(), 512);
  const auto encoded = defined_packets(format, packets, tensor_of(DataType::f32, values), kPlace);
  const DeviceMemory elements = on_device(tensor_of(DataType::f32, values));
  const DeviceMemory packet_bytes(device::the_driver(), encoded.size());
  ASSERT_TRUE(kernels_
                  ->encode(format,
                           {.packets = packets,
                            .elements = elements.data(),
                            .out = packet_bytes.data(),
                            .place = kPlace},
                           {})
                  .ok());
  SumJob sum{.packets = packets, .elements = elements.data(), .contributions_count = 2};
  sum.contributions[0] = {.data = packet_bytes.data()};
  sum.contributions[1] = {.data = elements.data(), .encoded = false};
  ASSERT_TRUE(kernels_->sum(format, sum, {.multiprocessors = 1}).ok());
  std::vector<std::byte> expected = tensor_of(DataType::f32, values);
  SumJob on_host = sum;
  on_host.elements = expected.data();
  on_host.contributions[0].data = encoded.data();
  on_host.contributions[1].data = expected.data();
  sum_on_host(format, on_host);
  EXPECT_EQ(elements.get(), expected);
}

TEST_F(KernelsOnTheDouble, RotateAndRotateBack) {
  const auto values = codec::all_of(codec::ValueKind::ordinary, 1000, 3);
  const Packets packets{1000, 512, 0, 2};
  const DeviceMemory elements = on_device(tensor_of(DataType::f32, values));
  const RotateJob job{
      .packets = packets, .elements = elements.data(), .out = elements.data(), .place = kPlace};
  std::vector<std::byte> expected = tensor_of(DataType::f32, values);
  RotateJob on_host = job;
  on_host.elements = on_host.out = expected.data();
  ASSERT_TRUE(kernels_->rotate(job, {}).ok());
  rotate_on_host(on_host);
  EXPECT_EQ(elements.get(), expected);
  ASSERT_TRUE(kernels_->unrotate(job, {}).ok());
  unrotate_on_host(on_host);
  EXPECT_EQ(elements.get(), expected);
}

TEST_F(KernelsOnTheDouble, AreLoadedByLaunchesThatDoNothing) {
  for (const CodecOptions& options : every_option_on_devices()) {
    const codec::Format format = codec::format_of(options, DataType::f32);
    EXPECT_TRUE(kernels_->load_now(format, {}).ok()) << to_string(options);
  }
  EXPECT_EQ(device::the_driver().call.cuStreamSynchronize(nullptr), cuda::kSuccess);
  EXPECT_EQ(kernels_->load_now(codec::format_of(Codec::int8, DataType::f32), {}).code(),
            StatusCode::kUnsupported);
}

TEST_F(KernelsOnTheDouble, DoNothingForNoElements) {
  const codec::Format format = codec::format_of(Codec::mxfp4, DataType::f32);
  EXPECT_TRUE(kernels_->encode(format, {.packets = cut(format, 0, 32)}, {}).ok());
}

TEST_F(KernelsOnTheDouble, RefuseFormatsOfTheProcessor) {
  CodecOptions rotated(Codec::mxfp4);
  rotated.rotate = true;
  for (const CodecOptions& options : {CodecOptions(Codec::int8), CodecOptions(Codec::luq),
                                      CodecOptions(Codec::sparse), rotated}) {
    const codec::Format format = codec::format_of(options, DataType::f32);
    EXPECT_FALSE(Kernels::supports(format));
    const Status status = kernels_->encode(format, {}, {});
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.text().find(to_string(format.options)), std::string_view::npos)
        << status.text();
    EXPECT_EQ(kernels_->sum(format, {}, {}).code(), StatusCode::kUnsupported);
  }
}

TEST(KernelsLoad, SaysWhenTheBuildHasNone) {
  const auto none = Kernels::load(device::the_driver(), {});
  EXPECT_EQ(none.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(none.status().text().find("nvcc"), std::string_view::npos);
}

TEST(KernelsImage, IsAFatBinaryWhereNvccWasFound) {
  if (built_image().empty()) GTEST_SKIP() << "nvcc was not found when this was built";
  constexpr std::uint32_t kMagic = 0xBA55ED50;
  std::uint32_t magic = 0;
  ASSERT_GT(built_image().size(), sizeof magic);
  std::memcpy(&magic, built_image().data(), sizeof magic);
  EXPECT_EQ(magic, kMagic);
}

}  // namespace
}  // namespace leeway::device_codec
