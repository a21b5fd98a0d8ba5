// Compares kernels that rotate, compiled for the host, with src/math/codec.
#include "device_codec/rotate_packets.h"

#include <gtest/gtest.h>

#include "support/host_kernels.h"
#include "unit/codec/mixed_values.h"
#include "unit/device_codec/formats_on_devices.h"

namespace leeway::device_codec {
namespace {

using codec::ValueKind;

std::vector<float> defined(const Packets& packets, std::vector<float> values, bool forward) {
  for (std::uint32_t i = 0; i < packets.count; ++i) {
    const PacketOfJob packet(packets, i);
    codec::Place place = kPlace;
    place.first_element += packet.first;
    const std::span span = std::span(values).subspan(packet.first, packet.elements);
    forward ? codec::scalar::rotate(place, span) : codec::scalar::unrotate(place, span);
  }
  return values;
}

std::vector<float> by_kernel(const Packets& packets, std::vector<float> values, bool forward) {
  auto* const bytes = reinterpret_cast<std::byte*>(values.data());
  const RotateJob job{.packets = packets, .elements = bytes, .out = bytes, .place = kPlace};
  forward ? rotate_on_host(job) : unrotate_on_host(job);
  return values;
}

TEST(RotatePackets, EqualTheDefinitionAtEveryLength) {
  for (const bool forward : {true, false}) {
    for (std::size_t count = 1; count <= 1300; count += count < 300 ? 1 : 37) {
      const Packets packets{count, 2048, 0, 1};
      const auto values = codec::all_of(ValueKind::ordinary, count, 50);
      ASSERT_TRUE(codec::same_floats(by_kernel(packets, values, forward),
                                     defined(packets, values, forward)))
          << count << " elements";
    }
  }
}

TEST(RotatePackets, EqualTheDefinitionPacketByPacket) {
  for (const bool forward : {true, false}) {
    for (const std::uint32_t packet_elements : {32u, 96u, 256u, 1376u}) {
      const codec::Format format = codec::format_of(Codec::nvfp4, DataType::f32);
      const Packets packets = cut(format, 5000, packet_elements);
      const auto values = codec::mixed(5000, 51);
      ASSERT_TRUE(codec::same_floats(by_kernel(packets, values, forward),
                                     defined(packets, values, forward)))
          << packet_elements << " elements a packet";
    }
  }
}

}  // namespace
}  // namespace leeway::device_codec
