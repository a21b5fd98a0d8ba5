// The bytes of block-scaled packets, written out: where scales and codes lie and in which order.
#include "codec/scaled_layout.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "unit/codec/round_trip.h"

namespace leeway::codec {
namespace {

// Encodes `values`, filled up with zeros to `count` elements. Returns the first `bytes` bytes of
// the encoding, and expects all later ones to be 0.
std::vector<int> first_bytes(const Format& format, std::initializer_list<float> values,
                             std::size_t count, std::size_t bytes) {
  std::vector<float> padded(values);
  padded.resize(count);
  std::vector<int> first;
  for (const std::byte byte : encoded(format, padded)) first.push_back(static_cast<int>(byte));
  for (std::size_t i = bytes; i < first.size(); ++i) EXPECT_EQ(first[i], 0) << "byte " << i;
  first.resize(bytes);
  return first;
}

using FieldBytes = std::vector<int>;

TEST(ScaledLayout, PutsElement0InTheLowNibble) {
  EXPECT_EQ(first_bytes(nearest(Codec::mxfp4), {1, 6, -0.5f, 4}, 32, 3),
            (FieldBytes{127, 0x72, 0x69}));
}

TEST(ScaledLayout, PutsFourSixBitCodesInThreeBytesLittleEndian) {
  // Codes 1, 2, 3 and 0x1F: 1 + (2 << 6) + (3 << 12) + (0x1F << 18) = 0x7C3081.
  EXPECT_EQ(first_bytes(nearest(Codec::mxfp6_e2m3), {0.125f, 0.25f, 0.375f, 7.5f}, 32, 4),
            (FieldBytes{127, 0x81, 0x30, 0x7C}));
  EXPECT_EQ(first_bytes(nearest(Codec::mxfp6_e3m2), {0.0625f, 0.125f, 0.1875f, 28}, 32, 4),
            (FieldBytes{127, 0x81, 0x30, 0x7C}));
}

TEST(ScaledLayout, PutsAllScalesOfAPacketBeforeItsCodes) {
  std::vector<float> values(64);
  values[0] = 6;
  values[32] = 12;
  values[63] = -12;
  const std::vector<std::byte> bytes = encoded(nearest(Codec::mxfp4), values);
  ASSERT_EQ(bytes.size(), 2u + 32u);
  EXPECT_EQ(bytes[0], std::byte{127});
  EXPECT_EQ(bytes[1], std::byte{128});
  EXPECT_EQ(bytes[2], std::byte{0x07});
  EXPECT_EQ(bytes[2 + 16], std::byte{0x07});
  EXPECT_EQ(bytes[2 + 31], std::byte{0xF0});
}

TEST(ScaledLayout, OfNvfp4IsPacketScaleBlockScalesCodes) {
  // The largest number of NVFP4 is 6 * 448 = 2688. The packet's maximum 6 fits 2688 * 2^-8 and not
  // 2688 * 2^-9, so the packet's scale is 2^-8, code 127 - 8 = 119. The scale of the first block is
  // 6 / 6 * 2^8 = 256, which is 0x78 in E4M3; that of the second is 3 / 6 * 2^8 = 128, 0x70.
  std::vector<float> values(32);
  values[0] = 1;
  values[1] = 6;
  values[16] = -3;
  const std::vector<std::byte> bytes = encoded(nearest(Codec::nvfp4), values);
  ASSERT_EQ(bytes.size(), 1u + 2u + 16u);
  EXPECT_EQ(bytes[0], std::byte{119});
  EXPECT_EQ(bytes[1], std::byte{0x78});
  EXPECT_EQ(bytes[2], std::byte{0x70});
  EXPECT_EQ(bytes[3], std::byte{0x72});
  EXPECT_EQ(bytes[3 + 8], std::byte{0x0F});
}

TEST(ScaledLayout, OfNvfp4TeBeginsWithTheMaximumAsFloat) {
  // Block scales are stored times 2688 / (tensor maximum), here times 1. So the scale 2688 / 6 =
  // 448 is stored as 0x7E.
  EXPECT_EQ(first_bytes(nearest(Codec::nvfp4_te), {2688, 448}, 16, 6),
            (FieldBytes{0x00, 0x00, 0x28, 0x45, 0x7E, 0x27}));
}

TEST(ScaledLayout, OfPacketScaledFormatsIsAFloatAndTheCodes) {
  EXPECT_EQ(first_bytes(nearest(Codec::fp8_e4m3), {448, -1}, 4, 6),
            (FieldBytes{0x00, 0x00, 0x80, 0x3F, 0x7E, 0xB8}));
  EXPECT_EQ(first_bytes(nearest(Codec::fp8_e5m2), {57344, -1}, 4, 6),
            (FieldBytes{0x00, 0x00, 0x80, 0x3F, 0x7B, 0xBC}));
  EXPECT_EQ(first_bytes(nearest(Codec::int8), {127, -127, -1, 2}, 4, 8),
            (FieldBytes{0x00, 0x00, 0x80, 0x3F, 0x7F, 0x81, 0xFF, 0x02}));
  EXPECT_EQ(first_bytes(stochastic(Codec::luq), {64, -1, 0, 2}, 4, 6),
            (FieldBytes{0x00, 0x00, 0x80, 0x3F, 0x97, 0x20}));
}

TEST(ScaledLayout, OfLuqHasAPlaneOfCodesForEachDraw) {
  CodecOptions options = Codec::luq;
  options.draws = 3;
  EXPECT_EQ(first_bytes(stochastic(options), {64, -1, 0, 2}, 4, 10),
            (FieldBytes{0x00, 0x00, 0x80, 0x3F, 0x97, 0x20, 0x97, 0x20, 0x97, 0x20}));
}

TEST(ScaledLayout, OfBlockScaledFp8IsFloatsAndCodes) {
  std::vector<float> values(256);
  values[0] = 448;
  values[128] = 896;
  const std::vector<std::byte> bytes = encoded(nearest(Codec::fp8_e4m3_block), values);
  ASSERT_EQ(bytes.size(), 8u + 256u);
  EXPECT_EQ(bytes[3], std::byte{0x3F});  // 1.0f
  EXPECT_EQ(bytes[7], std::byte{0x40});  // 2.0f
  EXPECT_EQ(bytes[8], std::byte{0x7E});
  EXPECT_EQ(bytes[8 + 128], std::byte{0x7E});
}

TEST(ScaledLayout, OfLuqNeverHoldsMinusZero) {
  std::vector<float> values(64, -0.003f);  // most of these fall to zero
  values[0] = 1.0f;
  const Format format = stochastic(Codec::luq);
  const std::vector<std::byte> bytes = encoded(format, values);
  for (std::size_t i = format.header_bytes; i < bytes.size(); ++i) {
    const int both = static_cast<int>(bytes[i]);
    ASSERT_NE(both & 0xF, 8) << i;
    ASSERT_NE(both >> 4, 8) << i;
  }
}

TEST(ScaledLayout, BytesThatNoEncoderSendsHaveAMeaningToo) {
  const std::vector<float> values = {1, 2, -3, 0.5f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0.25f};
  for (const Codec codec : {Codec::nvfp4, Codec::nvfp4_te}) {  // scales have no sign
    const Format format = nearest(codec);
    std::vector<std::byte> bytes = encoded(format, values);
    const std::vector<float> expected = decoded(format, bytes, 16);
    bytes[format.header_bytes] |= std::byte{0x80};
    EXPECT_EQ(decoded(format, bytes, 16), expected);
  }
  std::vector<std::byte> luq = encoded(stochastic(Codec::luq), std::vector<float>{64, 1});
  luq[4] = std::byte{0x87};  // -0
  const std::vector<float> levels = decoded(stochastic(Codec::luq), luq, 2);
  EXPECT_EQ(levels[0], 64.0f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(levels[1]), 0u);
  std::vector<std::byte> integers = encoded(nearest(Codec::int8), std::vector<float>{127});
  integers[4] = std::byte{0x80};
  EXPECT_EQ(decoded(nearest(Codec::int8), integers, 1)[0], -128.0f);
}

}  // namespace
}  // namespace leeway::codec
