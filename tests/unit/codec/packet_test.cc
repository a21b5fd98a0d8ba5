// The packet functions of leeway/codec.h.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "codec/codec.h"
#include "leeway/codec.h"

namespace leeway {
namespace {

std::vector<float> wave(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = std::sin(0.1f * static_cast<float>(i));
  return values;
}

double mean_square_error(const CodecOptions& options, const PacketPlace& place) {
  const std::vector<float> values = wave(1000);
  std::vector<std::byte> bytes(*encoded_bytes(options, DataType::f32, values.size()));
  EXPECT_TRUE(encode_packet(options, std::span(values), place, bytes).ok());
  std::vector<float> decoded(values.size());
  EXPECT_TRUE(decode_packet(options, bytes, place, std::span(decoded)).ok());
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    sum += std::pow(static_cast<double>(decoded[i]) - static_cast<double>(values[i]), 2);
  return sum / static_cast<double>(values.size());
}

TEST(Packet, DecodesToWhatWasEncodedWithinTheFormatsError) {
  const PacketPlace place{.seed = 7, .step = 3, .source = 2, .first_element = 64};
  EXPECT_EQ(mean_square_error(Codec::native, place), 0);
  EXPECT_EQ(mean_square_error(Codec::fp32, place), 0);
  EXPECT_LT(mean_square_error(Codec::bf16, place), 1e-5);
  EXPECT_LT(mean_square_error(Codec::fp8_e4m3_block, place), 2e-3);
  EXPECT_LT(mean_square_error(Codec::nvfp4, place), 2e-2);
  CodecOptions rotated(Codec::mxfp4);
  rotated.rotate = true;
  EXPECT_LT(mean_square_error(rotated, place), 5e-2);
}

TEST(Packet, HasTheBytesOfItsFormat) {
  EXPECT_EQ(*encoded_bytes(Codec::native, DataType::f32, 100), 400u);
  EXPECT_EQ(*encoded_bytes(Codec::bf16, DataType::f32, 100), 200u);
  EXPECT_EQ(*encoded_bytes(Codec::fp8_e4m3, DataType::bf16, 100), 104u);
}

// encode_packet() must accept Format::named(), by which a PayloadLayout names a codec.
TEST(Packet, TakesTheNameOfEveryFormat) {
  const std::vector<float> values = wave(512);
  for (int codec = 0; codec < static_cast<int>(Codec::automatic); ++codec) {
    for (const codec::Purpose purpose : {codec::Purpose::sum, codec::Purpose::copy}) {
      const codec::Format format =
          codec::format_of(static_cast<Codec>(codec), DataType::f32, purpose);
      const CodecOptions named = format.named();
      EXPECT_TRUE(validate(named).ok()) << validate(named).c_str();
      for (const codec::Purpose other : {codec::Purpose::sum, codec::Purpose::copy})
        EXPECT_EQ(codec::format_of(named, DataType::f32, other).options, format.options);
      std::vector<std::byte> bytes(format.encoded_bytes(values.size()));
      const Status status = encode_packet(named, std::span(values), {}, bytes);
      EXPECT_TRUE(status.ok()) << status.c_str();
    }
  }
}

TEST(Packet, RoundsAsItsPlaceSays) {
  const std::vector<float> values = wave(512);
  const auto bytes_at = [&](const PacketPlace& place) {
    std::vector<std::byte> bytes(*encoded_bytes(Codec::nvfp4, DataType::f32, values.size()));
    EXPECT_TRUE(encode_packet(Codec::nvfp4, std::span(values), place, bytes).ok());
    return bytes;
  };
  EXPECT_EQ(bytes_at({.seed = 1}), bytes_at({.seed = 1}));
  EXPECT_NE(bytes_at({.seed = 1}), bytes_at({.seed = 2}));
  EXPECT_NE(bytes_at({.seed = 1}), bytes_at({.seed = 1, .source = 1}));
}

TEST(Packet, RefusesWhatItCannotEncode) {
  std::vector<float> values(100);
  std::vector<std::byte> bytes(400);
  const auto code = [&](const CodecOptions& options, const PacketPlace& place,
                        MutableByteSpan into) {
    return encode_packet(options, std::span(values), place, into).code();
  };
  EXPECT_EQ(code(Codec::fp32, {}, bytes), StatusCode::kOk);
  EXPECT_EQ(code(Codec::automatic, {}, bytes), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Codec::fp32, {.first_element = 16}, bytes), StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Codec::fp32, {}, MutableByteSpan(bytes).first(399)), StatusCode::kInvalidArgument);
  CodecOptions wrong(Codec::luq);
  wrong.draws = 9;
  EXPECT_EQ(code(wrong, {}, bytes), StatusCode::kInvalidArgument);
  EXPECT_EQ(encoded_bytes(Codec::fp32, DataType::i32, 8).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(encoded_bytes(Codec::fp32, DataType::f32, kPacketElementsMax + 1).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(decode_packet(Codec::fp32, ByteSpan(bytes).first(4), {}, std::span(values)).code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace leeway
