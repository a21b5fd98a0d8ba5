// Tests formats and kernels. Every instruction set must give the bytes of the scalar reference
// code, at every length and alignment.
#include "codec/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "base/limits.h"
#include "base/philox.h"
#include "codec/element.h"
#include "unit/codec/supported_targets.h"

namespace leeway::codec {
namespace {

constexpr std::size_t kLongest = 257;
constexpr std::array kFloatCodecs = {Codec::fp32, Codec::fp16, Codec::bf16};

// Returns random bit patterns without NaN, because processors differ in the payload of a computed
// NaN. Every second value has any bits at all; the others have ordinary size.
std::vector<float> test_floats(std::size_t count, std::uint32_t stream) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t draw = keyed_hash(7, static_cast<std::uint32_t>(i), stream, 0, 0);
    const auto any = std::bit_cast<float>(static_cast<std::uint32_t>(draw));
    values[i] = i % 2 == 0 && std::isfinite(any) ? any : static_cast<float>(to_unit(draw) * 4 - 2);
  }
  return values;
}

std::vector<std::byte> scalar_encoding(Codec codec, std::span<const float> values) {
  std::vector<std::byte> bytes(values.size() * (codec == Codec::fp32 ? 4 : 2));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (codec == Codec::fp32) std::memcpy(&bytes[4 * i], &values[i], 4);
    const std::uint16_t code = codec == Codec::fp16 ? half_from_float(values[i]).bits
                                                    : bfloat16_from_float(values[i]).bits;
    if (codec != Codec::fp32) std::memcpy(&bytes[2 * i], &code, 2);
  }
  return bytes;
}

float scalar_decoding(Codec codec, const std::byte* bytes, std::size_t i) {
  std::uint16_t code = 0;
  float value = 0;
  std::memcpy(codec == Codec::fp32 ? static_cast<void*>(&value) : &code,
              bytes + i * (codec == Codec::fp32 ? 4 : 2), codec == Codec::fp32 ? 4 : 2);
  if (codec == Codec::fp16) return float_from_half({code});
  if (codec == Codec::bf16) return float_from_bfloat16({code});
  return value;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

TEST(Format, OfEachCodecStatesItsSizes) {
  EXPECT_EQ(format_of(Codec::native, DataType::f32).options.codec, Codec::fp32);
  EXPECT_EQ(format_of(Codec::native, DataType::i64).encoded_bytes(3), 24u);
  EXPECT_EQ(format_of(Codec::native, DataType::u8).encoded_bytes(3), 3u);
  EXPECT_EQ(format_of(Codec::fp32, DataType::f32).encoded_bytes(5), 20u);
  EXPECT_EQ(format_of(Codec::fp16, DataType::f32).encoded_bytes(5), 10u);
  EXPECT_EQ(format_of(Codec::bf16, DataType::f32).encoded_bytes(0), 0u);
}

TEST(Format, CountsAPartialBlockAsAWholeOne) {
  const Format blocks{
      .options = Codec::bf16, .header_bytes = 1, .block_elements = 16, .block_bytes = 9};
  EXPECT_EQ(blocks.encoded_bytes(16), 10u);
  EXPECT_EQ(blocks.encoded_bytes(17), 19u);
  EXPECT_EQ(blocks.elements_for(10 + 9 + 8), 32u);
  EXPECT_EQ(blocks.elements_for(1 + 4 * 9 - 1), 32u);
}

TEST(Format, FullPacketsHoldTheLargestMultipleOf32ElementsThatFits) {
  for (const Codec codec : kFloatCodecs) {
    const Format& format = format_of(codec, DataType::f32);
    for (std::size_t bytes = limits::kDatagramBytesMin - 52; bytes <= limits::kDatagramBytesMax;
         ++bytes) {
      const std::size_t elements = format.elements_for(bytes);
      ASSERT_EQ(elements % kPacketElementsMultiple, 0u);
      ASSERT_GT(elements, 0u);
      ASSERT_LE(format.encoded_bytes(elements), bytes);
      ASSERT_GT(format.encoded_bytes(elements + kPacketElementsMultiple), bytes);
    }
  }
}

void expect_encoding_matches_scalar(Codec codec, std::size_t count, std::size_t offset) {
  const Format& format = format_of(codec, DataType::f32);
  const std::vector<float> values = test_floats(kLongest, 1);
  const auto in = std::span(values).first(count);
  std::vector<std::byte> memory(offset + format.encoded_bytes(count) + 1, std::byte{0xA5});
  encode(format, in, {}, std::span(memory).subspan(offset, format.encoded_bytes(count)));
  const std::vector<std::byte> expected = scalar_encoding(codec, in);
  ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                         memory.begin() + static_cast<std::ptrdiff_t>(offset)))
      << to_string(codec) << " count " << count << " offset " << offset;
  ASSERT_EQ(memory.back(), std::byte{0xA5}) << "wrote past the end";
}

TEST(Encode, GivesTheScalarBytesOnEveryTargetAtEverySizeAndAlignment) {
  for_each_supported_target([] {
    for (const Codec codec : kFloatCodecs) {
      for (std::size_t count = 0; count <= kLongest; ++count)
        expect_encoding_matches_scalar(codec, count, count % 64);
      for (std::size_t offset = 0; offset < 64; ++offset)
        expect_encoding_matches_scalar(codec, 131, offset);
    }
  });
}

TEST(Encode, AgreesWithTheScalarDefinitionOnEveryTargetInAStrideOverAllFloats) {
  std::vector<float> values;  // values with NaN: encoding a NaN is defined to the bit
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 20'011) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (const std::uint32_t edge :
       {0x33000000u, 0x33000001u, 0x38800000u, 0x387FFFFFu, 0x477FEFFFu, 0x477FF000u, 0x47800000u,
        0x7F800000u, 0x7F800001u, 0x7FA02000u, 0x7FFFFFFFu, 0x00018000u}) {
    values.push_back(std::bit_cast<float>(edge));
    values.push_back(std::bit_cast<float>(edge | 0x80000000u));
  }
  for_each_supported_target([&] {
    for (const Codec codec : {Codec::fp16, Codec::bf16}) {
      std::vector<std::byte> bytes(values.size() * 2);
      encode(format_of(codec, DataType::f32), values, {}, bytes);
      EXPECT_EQ(bytes, scalar_encoding(codec, values)) << to_string(codec);
    }
  });
}

TEST(Decode, GivesTheScalarBitsForAllCodesOnEveryTarget) {
  std::vector<std::uint16_t> codes(0x10000);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  const ByteSpan bytes = std::as_bytes(std::span(codes));
  for_each_supported_target([&] {
    for (const Codec codec : {Codec::fp16, Codec::bf16}) {
      std::vector<float> decoded(codes.size());
      decode(format_of(codec, DataType::f32), bytes, {}, decoded);
      std::vector<float> expected(codes.size());
      for (std::size_t i = 0; i < codes.size(); ++i)
        expected[i] = scalar_decoding(codec, bytes.data(), i);
      EXPECT_TRUE(same_bits(decoded, expected)) << to_string(codec);
    }
  });
}

void expect_sums_match_scalar(Codec codec, std::size_t count, std::size_t offset) {
  const Format& format = format_of(codec, DataType::f32);
  const std::vector<float> values = test_floats(kLongest, 2);
  std::vector<std::byte> memory(offset);
  const auto encoded = scalar_encoding(codec, std::span(values).first(count));
  memory.insert(memory.end(), encoded.begin(), encoded.end());
  const ByteSpan in = ByteSpan(memory).subspan(offset);
  constexpr float kScale = 1.0f / 3.0f;

  std::vector<float> decoded(count), first(count), sum = test_floats(count, 3);
  std::vector<float> expected_decoded(count), expected_first(count), expected_sum = sum;
  decode(format, in, {}, decoded);
  accumulate_first(format, in, kScale, first);
  accumulate(format, in, kScale, sum);
  for (std::size_t i = 0; i < count; ++i) {
    expected_decoded[i] = scalar_decoding(codec, in.data(), i);
    expected_first[i] = kScale * expected_decoded[i];
    expected_sum[i] = expected_sum[i] + expected_first[i];
  }
  ASSERT_TRUE(same_bits(decoded, expected_decoded))
      << to_string(codec) << " count " << count << " offset " << offset;
  ASSERT_TRUE(same_bits(first, expected_first))
      << to_string(codec) << " count " << count << " offset " << offset;
  ASSERT_TRUE(same_bits(sum, expected_sum))
      << to_string(codec) << " count " << count << " offset " << offset;
}

TEST(Accumulate, GivesTheScalarBitsOnEveryTargetAtEverySizeAndAlignment) {
  for_each_supported_target([] {
    for (const Codec codec : kFloatCodecs) {
      for (std::size_t count = 0; count <= kLongest; ++count)
        expect_sums_match_scalar(codec, count, count % 64);
      for (std::size_t offset = 0; offset < 64; ++offset)
        expect_sums_match_scalar(codec, 131, offset);
    }
  });
}

TEST(Accumulate, LetsInfinityAndNanThrough) {
  const std::vector<float> values = {std::numeric_limits<float>::infinity(), std::nanf(""), -1.0f};
  for (const Codec codec : kFloatCodecs) {
    std::vector<float> sum(3, 1.0f);
    accumulate(format_of(codec, DataType::f32), scalar_encoding(codec, values), 0.5f, sum);
    EXPECT_TRUE(std::isinf(sum[0])) << to_string(codec);
    EXPECT_TRUE(std::isnan(sum[1])) << to_string(codec);
    EXPECT_EQ(sum[2], 0.5f) << to_string(codec);
  }
}

TEST(Encode, IsIdempotentOnDecodedValues) {
  const std::vector<float> values = test_floats(kLongest, 4);
  for (const Codec codec : kFloatCodecs) {
    const Format& format = format_of(codec, DataType::f32);
    const std::vector<std::byte> once = scalar_encoding(codec, values);
    std::vector<float> decoded(values.size());
    std::vector<std::byte> twice(once.size());
    decode(format, once, {}, decoded);
    encode(format, decoded, {}, twice);
    EXPECT_EQ(once, twice) << to_string(codec);
  }
}

#if defined(__SSE2__)
// Sets "flush to zero" and "denormals are zero" while it lives, as programs compiled with
// -ffast-math do for a process.
class FlushDenormals {
 public:
  FlushDenormals() { _mm_setcsr(saved_ | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(saved_); }

 private:
  unsigned saved_ = _mm_getcsr();
};

TEST(Encode, GivesTheSameBytesWhenTheProcessorFlushesDenormals) {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 200'003) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (const Codec codec : {Codec::fp16, Codec::bf16}) {
    const std::vector<std::byte> expected = scalar_encoding(codec, values);
    for_each_supported_target([&] {
      std::vector<std::byte> bytes(expected.size());
      std::vector<float> decoded(values.size());
      std::vector<std::byte> again(expected.size());
      {
        const FlushDenormals flush;
        encode(format_of(codec, DataType::f32), values, {}, bytes);
        decode(format_of(codec, DataType::f32), bytes, {}, decoded);
      }
      encode(format_of(codec, DataType::f32), decoded, {}, again);
      EXPECT_EQ(bytes, expected) << to_string(codec);
      EXPECT_EQ(again, expected) << to_string(codec);
    });
  }
}
#endif

TEST(Format, OfNativeHalvesConvertsToAndFromFloat) {
  const std::vector<float> values = test_floats(100, 5);
  const std::pair<DataType, Codec> same[] = {{DataType::f16, Codec::fp16},
                                             {DataType::bf16, Codec::bf16}};
  for (const auto& [dtype, codec] : same) {
    const Format& native = format_of(Codec::native, dtype);
    std::vector<std::byte> bytes(native.encoded_bytes(values.size()));
    encode(native, values, {}, bytes);
    EXPECT_EQ(bytes, scalar_encoding(codec, values));
    std::vector<float> decoded(values.size());
    decode(native, bytes, {}, decoded);
    EXPECT_EQ(decoded[17], scalar_decoding(codec, bytes.data(), 17));
  }
}

TEST(Format, IsTheIdentityWhereTheBytesAreTheTensors) {
  EXPECT_TRUE(format_of(Codec::native, DataType::f32).identity());
  EXPECT_TRUE(format_of(Codec::fp32, DataType::f32).identity());
  EXPECT_TRUE(format_of(Codec::native, DataType::bf16).identity());
  EXPECT_TRUE(format_of(Codec::native, DataType::i8).identity());
  EXPECT_FALSE(format_of(Codec::fp16, DataType::f32).identity());
  EXPECT_FALSE(format_of(Codec::bf16, DataType::f32).identity());
}

TEST(FormatDeathTest, RefusesToConvertTypesThatAreNotFloatSized) {
  const std::vector<std::byte> bytes(8);
  std::vector<float> out(1);
  EXPECT_DEATH(decode(format_of(Codec::native, DataType::f64), bytes, {}, out), "contract broken");
  EXPECT_DEATH(format_of(Codec::fp16, DataType::i32), "contract broken");
}

TEST(EncodeDeathTest, RefusesAnOutputOfAnotherSize) {
  const std::vector<float> values(4);
  std::vector<std::byte> out(7);
  EXPECT_DEATH(encode(format_of(Codec::fp16, DataType::f32), values, {}, out), "contract broken");
}

}  // namespace
}  // namespace leeway::codec
