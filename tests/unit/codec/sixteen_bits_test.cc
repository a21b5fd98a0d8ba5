// Codecs of float16 and bfloat16 tensors: the bytes are those of the same values in float32, for
// every codec, instruction set and 16-bit pattern.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/philox.h"
#include "codec/codec.h"
#include "codec/element.h"
#include "round_trip.h"
#include "supported_targets.h"

namespace leeway::codec {
namespace {

constexpr std::uint32_t kPatterns = 65536;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LEEWAY_TEST_SANITIZED
#endif
#endif

// The test tries one in kPacketStep packets of patterns, and one in kShiftStep places to which
// patterns are shifted. Under sanitizers it tries fewer: they make it 20 times slower, and the
// faults that they find do not depend on values.
#if defined(LEEWAY_TEST_SANITIZED)
constexpr std::size_t kPacketStep = 5;
constexpr std::uint32_t kShiftStep = 63;
#else
constexpr std::size_t kPacketStep = 1;
constexpr std::uint32_t kShiftStep = 1;
#endif
constexpr std::size_t kPacket = 2048;

// Every codec with every kind of setting that changes its bytes.
std::vector<CodecOptions> all_options() {
  std::vector<CodecOptions> all = {Codec::fp32, Codec::sparse, Codec::luq};
  for (int i = static_cast<int>(Codec::fp16); i < kCodecCount; ++i) {
    CodecOptions options(static_cast<Codec>(i));
    if (options.codec == Codec::automatic || options.codec == Codec::sparse ||
        options.codec == Codec::luq)
      continue;
    for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
      options.rounding = rounding;
      all.push_back(options);
    }
  }
  for (const char* special :
       {"luq:draws=3", "int8:clip", "nvfp4:bound=1", "mxfp4:even", "nvfp4:rotate", "fp32:rotate",
        "fp16:rotate", "sparse:1/8", "fp8_e4m3:rotate"})
    all.push_back(parse_codec(special).value());
  return all;
}

template <typename T>
T of_bits(std::uint32_t bits) {
  return {static_cast<std::uint16_t>(bits)};
}

template <typename T>
bool is_finite(T value) {
  return std::isfinite(as_float(value));
}

template <typename T>
std::vector<float> widened(std::span<const T> values) {
  std::vector<float> floats;
  for (const T value : values) floats.push_back(as_float(value));
  return floats;
}

template <typename T>
void expect_bytes_of_floats(const Format& format, std::span<const T> values, const Place& place) {
  const std::vector<float> floats = widened(values);
  std::vector<std::byte> expected(format.encoded_bytes(values.size()), std::byte{0xA5});
  std::vector<std::byte> bytes(expected.size() + 1, std::byte{0x5A});
  encode(format, floats, place, expected);
  // Encodes to an odd address.
  encode_elements(format, std::as_bytes(values), place, MutableByteSpan(bytes).subspan(1));
  ASSERT_TRUE(std::equal(expected.begin(), expected.end(), bytes.begin() + 1))
      << to_string(format.options) << ", " << values.size() << " elements";

  std::vector<float> decoded(values.size());
  decode(format, expected, place, decoded);
  std::vector<T> result(values.size());
  decode_elements(format, expected, place, std::as_writable_bytes(std::span(result)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T rounded;
    if constexpr (std::is_same_v<T, Half>) rounded = half_from_float(decoded[i]);
    if constexpr (std::is_same_v<T, BFloat16>) rounded = bfloat16_from_float(decoded[i]);
    ASSERT_EQ(rounded.bits, result[i].bits) << to_string(format.options) << " " << i;
  }
}

template <typename T>
void expect_all_packets(const CodecOptions& options, const std::vector<T>& values) {
  const Format format = format_of(options, DataTypeOf<T>::value);
  if (format.identity()) return;  // travels as it lies
  for (std::size_t first = 0; first < values.size(); first += kPacketStep * kPacket) {
    const std::size_t count = std::min(kPacket, values.size() - first);
    const Place place{.seed = 5, .step = 9, .source = 2, .first_element = first};
    expect_bytes_of_floats(format, std::span<const T>(values).subspan(first, count), place);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// All 16-bit patterns, in steps of `stride`, with pattern 0 at index `shift`. Tests vary `shift`,
// so that each pattern meets each lane of a vector register and other blocks. `finite_only` leaves
// out non-finite values, because one of them makes a whole packet NaN in some codecs.
template <typename T>
std::vector<T> all_patterns(std::uint32_t shift, std::uint32_t stride, bool finite_only) {
  std::vector<T> values;
  for (std::uint32_t i = 0; i < kPatterns; ++i) {
    const T value = of_bits<T>((i - shift) * stride);
    values.push_back(!finite_only || is_finite(value) ? value : T{0x3F80});
  }
  return values;
}

template <typename T>
class SixteenBits : public testing::Test {};
using Elements = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(SixteenBits, Elements);

TYPED_TEST(SixteenBits, EveryPatternGivesTheBytesOfItsFloat) {
  for_each_supported_target([] {
    for (const CodecOptions& options : all_options()) {
      expect_all_packets(options, all_patterns<TypeParam>(0, 1, false));
      expect_all_packets(options, all_patterns<TypeParam>(0, 1, true));
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

// Each pattern is tried at every place within four vectors, beside values of all magnitudes.
TYPED_TEST(SixteenBits, EveryPatternInEveryLane) {
  for (const CodecOptions& options : all_options()) {
    for (std::uint32_t shift = 1; shift < 64;
         shift += options.codec == Codec::sparse ? 21 : kShiftStep)
      expect_all_packets(options, all_patterns<TypeParam>(shift, 1, true));
    expect_all_packets(options, all_patterns<TypeParam>(3, 40503, true));
    expect_all_packets(options, all_patterns<TypeParam>(3, 40503, false));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TYPED_TEST(SixteenBits, EveryLengthGivesTheBytesOfItsFloats) {
  for_each_supported_target([] {
    std::vector<TypeParam> values;
    for (std::uint32_t i = 0; i < 600; ++i) {
      const auto bits = static_cast<std::uint32_t>(keyed_hash(3, i, 0, 0, 0));
      const auto value = of_bits<TypeParam>(bits & 0xBFFF);  // small magnitudes
      values.push_back(is_finite(value) ? value : TypeParam{});
    }
    for (const CodecOptions& options : all_options()) {
      const Format format = format_of(options, DataTypeOf<TypeParam>::value);
      if (format.identity()) continue;
      for (std::size_t count = 0; count <= 520; count += count < 270 ? 1 : 25) {
        expect_bytes_of_floats(format, std::span<const TypeParam>(values).first(count), {});
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

TEST(SixteenBitFormats, OfTheTensorsOwnTypeTravelAsTheyLie) {
  EXPECT_TRUE(format_of(Codec::bf16, DataType::bf16).identity());
  EXPECT_TRUE(format_of(Codec::fp16, DataType::f16).identity());
  EXPECT_FALSE(format_of(Codec::fp16, DataType::bf16).identity());
  EXPECT_FALSE(format_of(Codec::bf16, DataType::f16).identity());
  EXPECT_FALSE(format_of(Codec::fp32, DataType::bf16).identity());
  EXPECT_EQ(format_of(Codec::fp32, DataType::bf16).encoded_bytes(10), 40u);
}

TEST(SixteenBitFormats, AreCutIntoTheSamePacketsAsFloats) {
  for (const CodecOptions& options : all_options()) {
    for (const DataType dtype : {DataType::f16, DataType::bf16}) {
      const Format format = format_of(options, dtype);
      if (format.identity()) continue;
      EXPECT_EQ(format.elements_for(1400), format_of(options, DataType::f32).elements_for(1400))
          << to_string(options);
    }
  }
}

}  // namespace
}  // namespace leeway::codec
