// Packets of the sparse codec: which elements are kept, where they lie, and how a receiver decodes
// them. sampling_test.cc tests the probabilities.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "base/philox.h"
#include "codec/codec.h"
#include "codec/minifloat.h"
#include "codec/sampling.h"
#include "unit/codec/supported_targets.h"

namespace leeway::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kScaleBytes = 4;
constexpr Place kPlace{.seed = 77, .step = 5, .source = 3, .first_element = 512};

struct Pattern {
  std::uint16_t kept, group;
};
constexpr std::array kPatterns = {Pattern{1, 2},    Pattern{2, 4},    Pattern{1, 4},
                                  Pattern{3, 4},    Pattern{4, 8},    Pattern{1, 8},
                                  Pattern{4, 16},   Pattern{15, 16},  Pattern{8, 32},
                                  Pattern{51, 256}, Pattern{255, 256}};

Format sparse_format(Pattern pattern) {
  CodecOptions options{Codec::sparse};
  options.kept = pattern.kept;
  options.group = pattern.group;
  return format_of(options, DataType::f32, Purpose::sum);
}

std::vector<float> normal_values(std::size_t count, std::uint32_t stream) {
  std::vector<float> values(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const double radius = std::sqrt(-2 * std::log(1 - to_unit(keyed_hash(5, i, stream, 0, 0))));
    const double angle = 2 * std::numbers::pi * to_unit(keyed_hash(5, i, stream, 1, 0));
    values[i] = static_cast<float>(radius * std::cos(angle));
  }
  return values;
}

std::vector<std::byte> encoded(const Format& format, std::span<const float> values,
                               const Place& place = kPlace) {
  std::vector<std::byte> bytes(format.encoded_bytes(values.size()), std::byte{0xA5});
  encode(format, values, place, bytes);
  return bytes;
}

std::vector<float> decoded(const Format& format, ByteSpan bytes, std::size_t count) {
  std::vector<float> values(count, 123.0f);
  decode(format, bytes, kPlace, values);
  return values;
}

bool bit_of(const Format& format, ByteSpan bytes, std::size_t i) {
  const std::size_t block = kScaleBytes + i / format.block_elements * format.block_bytes;
  const std::size_t within = i % format.block_elements;
  return (static_cast<unsigned>(bytes[block + within / 8]) >> within % 8 & 1) != 0;
}

float scale_of(ByteSpan bytes) {
  float scale = 0;
  std::memcpy(&scale, bytes.data(), sizeof(scale));
  return scale;
}

template <typename Check>
void for_each_pattern(Check check) {
  for (const Pattern pattern : kPatterns) {
    SCOPED_TRACE(::testing::Message() << pattern.kept << '/' << pattern.group);
    check(sparse_format(pattern));
  }
}

// These functions compute a group's documented offset, and an element's rounding byte, from the
// place in the tensor.
std::uint32_t offset_of(std::uint64_t element, std::size_t group) {
  const auto index = static_cast<std::uint32_t>(group >= 16 ? 0 : element % 16 / group);
  const auto block = static_cast<std::uint32_t>(element / 16);
  const std::uint32_t stream = 0x80000000 | index / 4 << 24;
  return philox({block, stream, kPlace.step, kPlace.source}, philox_key(kPlace.seed))[index % 4] >>
         8;
}
std::uint8_t rounding_byte(std::uint64_t element) {
  const auto block = static_cast<std::uint32_t>(element / 16);
  const auto words = philox({block, 0, kPlace.step, kPlace.source}, philox_key(kPlace.seed));
  return static_cast<std::uint8_t>(words[element % 16 / 4] >> element % 4 * 8);
}

template <std::size_t kGroup>
void expect_follows_the_rules(std::uint16_t kept) {
  const Format format = sparse_format({kept, kGroup});
  const auto values = normal_values(1024, kGroup);
  const auto bytes = encoded(format, values);
  const auto result = decoded(format, bytes, values.size());
  for (std::size_t first = 0; first < values.size(); first += kGroup) {
    std::array<float, kGroup> group;
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), kGroup, group.begin());
    const auto units = inclusion_units(group, kept);
    std::uint32_t running = offset_of(kPlace.first_element + first, kGroup);
    for (std::size_t i = 0; i < kGroup; ++i) {
      const bool keep = passes_integer(running, units[i]);
      ASSERT_EQ(bit_of(format, bytes, first + i), keep) << first + i;
      const auto sent =
          static_cast<float>(static_cast<double>(group[i]) * kCertain / std::max(units[i], 1u));
      const std::uint8_t random = rounding_byte(kPlace.first_element + first + i);
      const int code = encode_stochastic(kE4M3, sent / scale_of(bytes), random);
      ASSERT_EQ(result[first + i], keep ? scale_of(bytes) * decode(kE4M3, code) : 0.0f)
          << first + i;
    }
  }
}

TEST(EncodeSparse, SendsWhatTheKeyedOffsetSelectsRoundedByTheKeyedByteOnEveryTarget) {
  for_each_supported_target([] {
    expect_follows_the_rules<2>(1);
    expect_follows_the_rules<4>(2);
    expect_follows_the_rules<8>(3);
    expect_follows_the_rules<16>(4);
    expect_follows_the_rules<32>(8);
    expect_follows_the_rules<256>(51);
  });
}

TEST(EncodeSparse, KeepsTheWantedNumberOfEveryGroup) {
  for_each_pattern([](const Format& format) {
    const auto values = normal_values(1024, 1);
    const auto bytes = encoded(format, values);
    for (std::size_t first = 0; first < values.size(); first += format.options.group) {
      unsigned kept = 0;
      for (std::size_t i = 0; i < format.options.group; ++i)
        kept += bit_of(format, bytes, first + i);
      ASSERT_EQ(kept, format.options.kept) << first;
    }
  });
}

// The mean of each of 320 elements over 4,000 steps must lie within 5 of its measured standard
// errors.
TEST(EncodeSparse, IsUnbiasedOverSteps) {
  constexpr int kSteps = 4000;
  for (const Pattern pattern :
       {Pattern{1, 2}, Pattern{2, 4}, Pattern{1, 8}, Pattern{4, 16}, Pattern{8, 32}}) {
    const Format format = sparse_format(pattern);
    const auto values = normal_values(64, 2);
    std::vector<double> sum(values.size());
    std::vector<double> squares(values.size());
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      const auto result =
          decoded(format, encoded(format, values, {.seed = 1, .step = step}), values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        sum[i] += result[i];
        squares[i] += static_cast<double>(result[i]) * result[i];
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double mean = sum[i] / kSteps;
      const double error = std::sqrt((squares[i] / kSteps - mean * mean) / kSteps);
      EXPECT_NEAR(mean, values[i], 5 * error + 1e-9)
          << i << " of " << pattern.kept << '/' << pattern.group;
    }
  }
}

TEST(EncodeSparse, RepeatsItsBytesAndChangesThemWithEveryPartOfTheKey) {
  const Format format = sparse_format({2, 4});
  const auto values = normal_values(256, 3);
  const auto bytes = encoded(format, values);
  EXPECT_EQ(encoded(format, values), bytes);
  for (const Place other :
       {Place{78, 5, 3, 512}, Place{77, 6, 3, 512}, Place{77, 5, 4, 512}, Place{77, 5, 3, 768},
        Place{77 | 1ull << 40, 5, 3, 512}, Place{77, 5, 3, 512 | 1ull << 40}}) {
    EXPECT_NE(encoded(format, values, other), bytes);
  }
}

TEST(EncodeSparse, KeepsTheSameElementsHoweverTheTensorIsCut) {
  for_each_pattern([](const Format& format) {
    const auto values = normal_values(1024, 4);
    const auto whole = encoded(format, values);
    for (const std::size_t length :
         {std::max<std::size_t>(format.block_elements, 64), std::size_t{256}}) {
      for (std::size_t first = 0; first < values.size(); first += length) {
        Place place = kPlace;
        place.first_element += first;
        const auto part = encoded(format, std::span(values).subspan(first, length), place);
        for (std::size_t i = 0; i < length; ++i) {
          ASSERT_EQ(bit_of(format, part, i), bit_of(format, whole, first + i)) << first + i;
        }
      }
    }
  });
}

TEST(EncodeSparse, FillsAShorterLastBlockWithZeros) {
  for_each_pattern([](const Format& format) {
    const auto values = normal_values(2 * format.block_elements, 5);
    for (std::size_t count = 0; count < values.size(); count += count < 70 ? 1 : 37) {
      std::vector<float> padded(values.begin(),
                                values.begin() + static_cast<std::ptrdiff_t>(count));
      padded.resize(format.blocks(count) * format.block_elements, 0.0f);
      ASSERT_EQ(encoded(format, std::span(values).first(count)), encoded(format, padded)) << count;
      auto result = decoded(format, encoded(format, padded), padded.size());
      result.resize(count);
      ASSERT_EQ(decoded(format, encoded(format, padded), count), result) << count;
    }
  });
}

TEST(EncodeSparse, NeverKeepsZerosAndLeavesUnusedCodesZero) {
  for_each_pattern([](const Format& format) {
    std::vector<float> values(512, 0.0f);
    values[3] = -0.0f;
    values[300] = -2.5f;
    const auto bytes = encoded(format, values);
    std::size_t set = 0;
    for (std::size_t i = 0; i < values.size(); ++i) set += bit_of(format, bytes, i);
    EXPECT_EQ(set, 1u);
    EXPECT_EQ(decoded(format, bytes, values.size())[300], -2.5f);
    const auto nonzero = std::ranges::count_if(bytes.begin() + kScaleBytes, bytes.end(),
                                               [](std::byte byte) { return byte != std::byte{0}; });
    EXPECT_EQ(nonzero, 2);  // one bit and one code
  });
}

TEST(EncodeSparse, OfZerosIsZeros) {
  for_each_pattern([](const Format& format) {
    const std::vector<float> zeros(300, -0.0f);
    const auto bytes = encoded(format, zeros);
    EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; }));
    EXPECT_EQ(decoded(format, bytes, 300), std::vector<float>(300, 0.0f));
  });
}

TEST(EncodeSparse, MakesThePacketNanOfOneNonFiniteElement) {
  for_each_pattern([](const Format& format) {
    for (const float poison : {kNan, kInfinity, -kInfinity, -kNan}) {
      auto values = normal_values(300, 6);
      values[123] = poison;
      const auto bytes = encoded(format, values);
      const auto result = decoded(format, bytes, 300);
      EXPECT_TRUE(std::ranges::all_of(result, [](float x) { return std::isnan(x); }));
      std::vector<float> sum(300, 1.0f);
      accumulate(format, bytes, 0.0f, sum);
      EXPECT_TRUE(std::ranges::all_of(sum, [](float x) { return std::isnan(x); }));
    }
  });
}

TEST(EncodeSparse, MakesThePacketNanWhereWhatItMustSendExceedsTheFloats) {
  const std::vector<float> values(32, 3e38f);
  const Format format = sparse_format({1, 4});
  const auto result = decoded(format, encoded(format, values), 32);
  EXPECT_TRUE(std::ranges::all_of(result, [](float x) { return std::isnan(x); }));
}

TEST(EncodeSparse, CarriesTheSmallestFloats) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  std::vector<float> values(32, 0.0f);
  values[4] = tiny;
  values[9] = -3 * tiny;
  const Format format = sparse_format({2, 4});
  EXPECT_EQ(decoded(format, encoded(format, values), 32), values);
}

// At the chosen scale, the largest value to be sent is at most E4M3's 448. With the next smaller
// float as the scale, that value would be clipped.
TEST(EncodeSparse, TakesTheSmallestScaleThatDoesNotClip) {
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const auto magnitude =
        static_cast<float>(std::exp2(200 * to_unit(keyed_hash(9, i, 0, 0, 0)) - 100));
    std::vector<float> values(32, 0.0f);
    values[i % 32] = magnitude;
    const auto bytes = encoded(sparse_format({2, 4}), values);
    const double scale = scale_of(bytes);
    ASSERT_GE(scale * 448, magnitude);
    ASSERT_LT(std::nextafter(scale_of(bytes), 0.0f) * 448.0, magnitude);
  }
}

TEST(AccumulateSparse, AddsScaledCodesToKeptElementsAlone) {
  for_each_pattern([](const Format& format) {
    const auto values = normal_values(700, 7);
    const auto bytes = encoded(format, values);
    const auto result = decoded(format, bytes, values.size());
    auto sum = normal_values(700, 8);
    auto expected = sum;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      // Scaling by a power of two changes no rounding, so accumulating adds 0.25 times what
      // decoding gives.
      if (bit_of(format, bytes, i)) expected[i] = expected[i] + 0.25f * result[i];
    }
    accumulate(format, bytes, 0.25f, sum);
    EXPECT_EQ(sum, expected);
    accumulate_first(format, bytes, 0.25f, sum);
    for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(sum[i], 0.25f * result[i]) << i;
  });
}

TEST(DecodeSparse, IgnoresBitsBeyondTheCodesAndBeyondTheEnd) {
  for_each_pattern([](const Format& format) {
    std::vector<std::byte> bytes(format.encoded_bytes(format.block_elements), std::byte{0xFF});
    const float one = 1.0f;
    std::memcpy(bytes.data(), &one, sizeof(one));
    const std::size_t slots = format.block_bytes - format.block_elements / 8;
    std::fill_n(bytes.rbegin(), slots, std::byte{0x38});  // 1.0
    const auto result = decoded(format, bytes, format.block_elements);
    for (std::size_t i = 0; i < result.size(); ++i)
      ASSERT_EQ(result[i], i < slots ? 1.0f : 0.0f) << i;
    std::vector<float> fewer(slots,
                             // The packet has codes for two elements beyond `count`, which must not
                             // change the last two here.
                             123.0f);
    const std::size_t count = slots - 2;
    std::vector<std::byte> shorter(
        bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(format.encoded_bytes(count)));
    decode(format, shorter, kPlace, std::span(fewer).first(count));
    for (std::size_t i = 0; i < slots; ++i) ASSERT_EQ(fewer[i], i < count ? 1.0f : 123.0f) << i;
  });
}

// The sanitizers detect wrong accesses; this test checks that every element is written, and nothing
// beyond.
TEST(DecodeSparse, TakesAnyBytes) {
  for_each_pattern([](const Format& format) {
    for (std::uint32_t round = 0; round < 100; ++round) {
      const std::size_t count = keyed_hash(3, round, 0, 0, 0) % 600;
      std::vector<std::byte> bytes(format.encoded_bytes(count));
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] =
            static_cast<std::byte>(keyed_hash(3, round, static_cast<std::uint32_t>(i), 1, 0));
      }
      const float scale = round % 2 == 0 ? 2.0f : scale_of(bytes);
      std::memcpy(bytes.data(), &scale, sizeof(scale));
      std::vector<float> out(count + 1, 123.5f);
      decode(format, bytes, kPlace, std::span(out).first(count));
      ASSERT_EQ(out.back(), 123.5f);
      ASSERT_TRUE(round % 2 == 1 || std::ranges::count(out, 123.5f) == 1);
      accumulate(format, bytes, 0.5f, std::span(out).first(count));
      ASSERT_EQ(out.back(), 123.5f);
    }
  });
}

TEST(DecodeSparse, MakesAnInfiniteScaleNanEverywhere) {
  const Format format = sparse_format({2, 4});
  std::vector<std::byte> bytes(format.encoded_bytes(40));
  std::memcpy(bytes.data(), &kInfinity, sizeof(kInfinity));
  const auto result = decoded(format, bytes, 40);
  EXPECT_TRUE(std::ranges::all_of(result, [](float x) { return std::isnan(x); }));
}

double signal_to_noise_db(const Format& format, std::span<const float> values) {
  constexpr std::size_t kPacket = 2048;
  double signal = 0;
  double noise = 0;
  for (std::size_t first = 0; first < values.size(); first += kPacket) {
    const auto part = values.subspan(first, kPacket);
    const auto result =
        decoded(format, encoded(format, part, {.seed = 2, .first_element = first}), kPacket);
    for (std::size_t i = 0; i < kPacket; ++i) {
      const double error = static_cast<double>(result[i]) - part[i];
      signal += static_cast<double>(part[i]) * part[i];
      noise += error * error;
    }
  }
  return 10 * std::log10(signal / noise);
}

struct Quality {
  Pattern pattern;
  double normal_db;
  double lognormal_db;
};

// Compares the noise of 2^18 samples with values of another implementation on 2^20 other samples.
// E4M3's rounding adds 0.02 dB or less.
TEST(EncodeSparse, HasTheNoiseOfOptimalSampling) {
  const auto normal = normal_values(1 << 18, 9);
  std::vector<float> lognormal(normal.size());
  std::ranges::transform(normal, lognormal.begin(), [](float x) { return std::exp(x); });
  for (const Quality& row : {Quality{{2, 4}, 3.27, 6.95}, Quality{{4, 8}, 4.05, 8.21},
                             Quality{{1, 4}, -2.81, -0.45}, Quality{{2, 8}, -2.36, 0.74},
                             Quality{{1, 8}, -6.49, -4.17}, Quality{{4, 16}, -2.15, 1.46}}) {
    const Format format = sparse_format(row.pattern);
    SCOPED_TRACE(::testing::Message() << row.pattern.kept << ':' << row.pattern.group);
    EXPECT_NEAR(signal_to_noise_db(format, normal), row.normal_db, 0.10);
    EXPECT_NEAR(signal_to_noise_db(format, lognormal), row.lognormal_db, 0.30);
  }
}

}  // namespace
}  // namespace leeway::codec
