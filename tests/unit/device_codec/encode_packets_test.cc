// Kernels that encode, compiled for the host, must give the bytes of src/math/codec: for every
// format, rounding, scale rule, tensor type, tail and alignment.
#include "device_codec/encode_packets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/host_kernels.h"
#include "unit/codec/mixed_values.h"
#include "unit/device_codec/formats_on_devices.h"

namespace leeway::device_codec {
namespace {

// Encodes to an address that is `off` bytes from alignment, over bytes that are not zero, with
// guard bytes on both sides. The tensor is shifted, too.
std::vector<std::byte> encoded_by_kernel(const codec::Format& format, const Packets& packets,
                                         std::span<const std::byte> tensor,
                                         const codec::Place& place, std::size_t off) {
  const std::size_t bytes = bytes_of(format, packets);
  std::vector<std::byte> out(1 + off + bytes + 1, std::byte{0x55});
  const std::size_t shift = off % 4 * size_of(format.element);
  std::vector<std::byte> shifted(shift + tensor.size());
  std::ranges::copy(tensor, shifted.begin() + static_cast<std::ptrdiff_t>(shift));
  encode_on_host(format, {.packets = packets,
                          .elements = shifted.data() + shift,
                          .out = out.data() + 1 + off,
                          .place = place});
  EXPECT_TRUE(std::all_of(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(1 + off),
                          [](std::byte one) { return one == std::byte{0x55}; }));
  EXPECT_EQ(out.back(), std::byte{0x55});
  return {out.begin() + static_cast<std::ptrdiff_t>(1 + off), out.end() - 1};
}

void expect_same_bytes(const codec::Format& format, std::span<const float> values,
                       std::uint32_t packet_elements, std::size_t off = 0,
                       const codec::Place& place = kPlace) {
  const std::vector<std::byte> tensor = tensor_of(format.element, values);
  const Packets packets = cut(format, values.size(), packet_elements);
  ASSERT_EQ(encoded_by_kernel(format, packets, tensor, place, off),
            defined_packets(format, packets, tensor, place))
      << to_string(format.options) << " of " << to_string(format.element) << ", " << values.size()
      << " elements, " << off << " bytes off";
}

TEST(EncodePackets, EqualTheDefinitionAtEveryLength) {
  for (const CodecOptions& options : every_option_on_devices()) {
    const codec::Format format = codec::format_of(options, DataType::f32);
    for (std::size_t count = 0; count <= 1100; count += count < 40 ? 1 : 47) {
      const auto stream = static_cast<std::uint32_t>(count);
      expect_same_bytes(format, codec::mixed(count, stream), 2048, count % 16);
    }
  }
}

// The packet's scale must see its largest magnitude even behind the last whole quad.
TEST(EncodePackets, TheLargestElementMayBeTheLast) {
  for (const CodecOptions& options : every_option_on_devices()) {
    const codec::Format format = codec::format_of(options, DataType::f32);
    for (std::size_t count = 1300; count < 1316; ++count) {
      std::vector<float> values = codec::mixed(count, 3);
      for (float& value : values)
        value = std::isfinite(value) ? std::clamp(value, -1.0f, 1.0f) : 1.0f;
      for (const float largest : {7.0f, -7.0f}) {
        values.back() = largest;
        expect_same_bytes(format, values, 2048);
      }
    }
  }
}

TEST(EncodePackets, EqualTheDefinitionForSixteenBitTensors) {
  for (const CodecOptions& options : every_option_on_devices()) {
    for (const DataType type : {DataType::f16, DataType::bf16}) {
      const codec::Format format = codec::format_of(options, type);
      if (format.identity()) continue;  // elements are sent as they lie in memory
      for (const std::size_t count : {1, 15, 16, 31, 33, 257, 700})
        expect_same_bytes(format, codec::mixed(count, 60), 512, count % 16);
    }
  }
}

TEST(EncodePackets, EqualTheDefinitionOnValuesOfOneKind) {
  for (const CodecOptions& options : every_option_on_devices()) {
    const codec::Format format = codec::format_of(options, DataType::f32);
    for (int kind = 0; kind < static_cast<int>(codec::ValueKind::count); ++kind) {
      expect_same_bytes(
          format,
          codec::all_of(static_cast<codec::ValueKind>(kind), 700, static_cast<std::uint32_t>(kind)),
          384);
    }
  }
}

TEST(EncodePackets, EqualTheDefinitionAtEveryScale) {
  for (const CodecOptions& options : every_option_on_devices()) {
    std::vector<float> values;
    for (int exponent = -120; exponent <= 120; exponent += 5) {
      for (std::size_t i = 0; i < 128; ++i) {
        const float tie = codec::value_of(codec::ValueKind::ties, codec::value_bits(i, 77));
        values.push_back(std::ldexp(tie, exponent));
      }
    }
    expect_same_bytes(codec::format_of(options, DataType::f32), values, 128);
  }
}

TEST(EncodePackets, EqualTheDefinitionInPacketsOfDatagrams) {
  for (const CodecOptions& options : every_option_on_devices()) {
    const codec::Format format = codec::format_of(options, DataType::f32);
    const auto elements = static_cast<std::uint32_t>(format.elements_for(1400));
    expect_same_bytes(format, codec::mixed(9 * elements + 77, 80), elements, 3);
  }
}

TEST(EncodePackets, KeyRandomBitsByThePlaceInTheTensor) {
  for (const CodecOptions& options : every_option_on_devices()) {
    if (options.rounding != Rounding::stochastic) continue;
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{16}, std::uint64_t{4064},
                                      (std::uint64_t{1} << 40) + 48}) {
      const codec::Place place{.seed = codec::value_bits(first, 90),
                               .step = static_cast<std::uint32_t>(first),
                               .source = 9,
                               .first_element = first};
      expect_same_bytes(codec::format_of(options, DataType::f32),
                        codec::all_of(codec::ValueKind::ordinary, 900, 91), 256, 0, place);
    }
  }
}

TEST(EncodePackets, DoNotDependOnHowManyWarpsWork) {
  const codec::Format format = codec::format_of(Codec::nvfp4, DataType::f32, codec::Purpose::sum);
  const auto tensor = tensor_of(DataType::f32, codec::mixed(5000, 95));
  const Packets packets = cut(format, 5000, 256);
  const auto expected = defined_packets(format, packets, tensor, kPlace);
  for (const unsigned warps : {1, 2, 19, 20, 21, 64}) {
    std::vector<std::byte> out(expected.size());
    encode_on_host(
        format, {.packets = packets, .elements = tensor.data(), .out = out.data(), .place = kPlace},
        warps);
    EXPECT_EQ(out, expected) << warps << " warps";
  }
}

}  // namespace
}  // namespace leeway::device_codec
