// Which random byte rounds which element is a contract between ranks, repairs and machines. Tests
// known answers of Philox, each byte's place, and that values do not depend on how a tensor is cut
// into packets.
#include "codec/random_bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "unit/codec/round_trip.h"

namespace leeway::codec {
namespace {

TEST(RandomBytes, AreTheKnownAnswerOfTheBlocksCounterInLittleEndianOrder) {
  // Philox4x32-10 of the counter 5, 0, 7, 3 and the key 12345678 9abcdef0 is a63901ee b1ed361a
  // 8ee33927 dc7c28f9. Each word begins with its lowest byte.
  const Place place{.seed = 0x9ABCDEF012345678, .step = 7, .source = 3};
  const std::array<std::uint8_t, 16> expected = {0xEE, 0x01, 0x39, 0xA6, 0x1A, 0x36, 0xED, 0xB1,
                                                 0x27, 0x39, 0xE3, 0x8E, 0xF9, 0x28, 0x7C, 0xDC};
  EXPECT_EQ(random_bytes(place, kRoundingStream, 5), expected);
  const PhiloxCounter counter = random_counter(place, kRoundingStream, 5);
  EXPECT_EQ(counter, (PhiloxCounter{5, 0, 7, 3}));
}

TEST(RandomCounter, KeepsBlockDrawAndStreamApart) {
  const Place place{.step = 0xFFFFFFFF, .source = 9};
  const PhiloxCounter counter = random_counter(place, kSamplingStream, 0xABCDEF12345678, 0xF);
  EXPECT_EQ(counter, (PhiloxCounter{0x12345678, 0x8FABCDEF, 0xFFFFFFFF, 9}));
}

// Element j is rounded up exactly if its fraction, in 256ths, plus byte j is at least 256. So a
// fraction of 256 - byte is rounded up, and a fraction that is one less is not.
TEST(EncodeStochastic, RoundsElementJWithByteJOfItsBlock) {
  constexpr std::size_t kBlock = 5;
  Place place{.seed = 0x9ABCDEF012345678, .step = 7, .source = 3};
  place.first_element =
      (kBlock - 1) * kRandomBlockElements;  // the second half of an MX block of 32
  const auto bytes = random_bytes(place, kRoundingStream, kBlock);
  const Format format = stochastic(Codec::mxfp4);
  for (const int short_of_whole : {0, 1}) {
    std::vector<float> values(32, 6.0f);
    for (std::size_t j = 0; j < 16; ++j) {
      values[16 + j] = 2.0f + static_cast<float>(256 - bytes[j] - short_of_whole) / 256;
    }
    std::vector<std::byte> encoded(format.encoded_bytes(32));
    std::vector<float> decoded(32);
    encode(format, values, place, encoded);
    decode(format, encoded, place, decoded);
    for (std::size_t j = 0; j < 16; ++j) {
      ASSERT_EQ(decoded[16 + j], short_of_whole == 0 ? 3.0f : 2.0f) << j;
    }
  }
}

// ---- the same tensor in other packets, steps and ranks ----

constexpr std::size_t kTensor = 1024;

std::vector<float> tensor() {
  std::vector<float> values(kTensor);
  for (std::size_t i = 0; i < kTensor; ++i) {
    values[i] =
        static_cast<float>(to_unit(keyed_hash(3, static_cast<std::uint32_t>(i), 0, 0, 0)) * 2 - 1);
  }
  return values;
}

// The tensor's decoded values when it is sent in packets of `packet` elements.
std::vector<float> sent_in_packets_of(std::size_t packet, const Format& format, Place place) {
  const std::vector<float> values = tensor();
  const std::uint64_t origin = place.first_element;
  std::vector<float> received(kTensor);
  for (std::size_t at = 0; at < kTensor; at += packet) {
    std::vector<std::byte> bytes(format.encoded_bytes(packet));
    place.first_element = origin + at;
    encode(format, std::span(values).subspan(at, packet), place, bytes);
    decode(format, bytes, place, std::span(received).subspan(at, packet));
  }
  return received;
}

std::vector<CodecOptions> options_with_scales_of_no_packet() {
  std::vector<CodecOptions> all = {Codec::fp16,       Codec::bf16,       Codec::fp8_e4m3_block,
                                   Codec::mxfp8_e4m3, Codec::mxfp8_e5m2, Codec::fp8_e5m2_block,
                                   Codec::mxfp6_e2m3, Codec::mxfp6_e3m2, Codec::mxfp4};
  for (CodecOptions bounded :
       {Codec::fp8_e4m3, Codec::fp8_e5m2, Codec::nvfp4, Codec::nvfp4_te, Codec::luq, Codec::int8}) {
    bounded.bound = 1.0f;
    all.push_back(bounded);
    bounded.draws = 3;
    if (bounded.codec == Codec::luq) all.push_back(bounded);
  }
  return all;
}

TEST(EncodeStochastic, GivesTheSameValuesWhateverThePacketSize) {
  for (const CodecOptions& options : options_with_scales_of_no_packet()) {
    const Format format = stochastic(options);
    const Place place{.seed = 5, .step = 1, .source = 1, .first_element = 1 << 20};
    const std::vector<float> whole = sent_in_packets_of(kTensor, format, place);
    EXPECT_EQ(sent_in_packets_of(128, format, place), whole) << to_string(options);
    EXPECT_EQ(sent_in_packets_of(512, format, place), whole) << to_string(options);
  }
}

TEST(EncodeStochastic, DrawsAnewForEverySeedStepRankAndPosition) {
  for (const CodecOptions& options : options_with_scales_of_no_packet()) {
    const Format format = stochastic(options);
    const Place place{.seed = 5, .step = 1, .source = 1};
    const std::vector<float> first = sent_in_packets_of(kTensor, format, place);
    EXPECT_EQ(sent_in_packets_of(kTensor, format, place), first) << "a resend has the same bytes";
    for (const Place& other :
         {Place{.seed = 6, .step = 1, .source = 1},
          Place{.seed = 5 + (1ull << 32), .step = 1, .source = 1},
          Place{.seed = 5, .step = 2, .source = 1}, Place{.seed = 5, .step = 1, .source = 2},
          Place{.seed = 5, .step = 1, .source = 1, .first_element = 1024},
          Place{.seed = 5, .step = 1, .source = 1, .first_element = std::uint64_t{1} << 36}}) {
      EXPECT_NE(sent_in_packets_of(kTensor, format, other), first) << to_string(options);
    }
  }
}

}  // namespace
}  // namespace leeway::codec
