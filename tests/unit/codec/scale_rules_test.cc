// Compares the scale rules with searches by their definitions, in double precision, where every
// product of a scale and an element is exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "codec/block_scale.h"
#include "unit/codec/round_trip.h"

namespace leeway::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr Minifloat kMxElements[] = {kE4M3, kE5M2, kE2M3, kE3M2, kE2M1};

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
double e8m0(int code) {
  return std::ldexp(1.0, code - 127);
}

int mx_code(const Minifloat& element, ScaleRule rule, float amax) {
  return mx_scale(element, rule, bits_of(amax)).stored;
}

// Returns block maxima at which a rule may change its choice. They are powers of two, the element's
// largest value, the middle of its last step and of the step above, each at several scales and with
// the neighbouring floats.
std::vector<float> telling_maxima(const Minifloat& element) {
  std::vector<float> maxima;
  const float last = largest(element);
  const float before = magnitude_value(element, element.magnitude_max - 1);
  for (const int exponent : {-140, -126, -100, -17, -1, 0, 1, 30, 110}) {
    for (const float base : {1.0f, last, before, (last + before) / 2, last + (last - before) / 2}) {
      const float maximum = std::ldexp(base, exponent);
      for (const float x :
           {std::nextafter(maximum, 0.0f), maximum, std::nextafter(maximum, kInfinity)}) {
        if (x > 0 && std::isfinite(x)) maxima.push_back(x);
      }
    }
  }
  return maxima;
}

// ---- MX ----

TEST(MxScaleFloor, IsThePowerOfTwoOfTheMaximumOverThatOfTheLargestElement) {
  for (const Minifloat& element : kMxElements) {
    for (const float amax : telling_maxima(element)) {
      const int expected = std::ilogb(amax) - std::ilogb(largest(element)) + 127;
      ASSERT_EQ(mx_code(element, ScaleRule::floor, amax), std::clamp(expected, 0, 254)) << amax;
    }
  }
}

TEST(MxScaleFloor, ClipsBetweenTheLargestElementAndTheNextPowerOfTwo) {
  EXPECT_EQ(mx_code(kE2M1, ScaleRule::floor, 6.0f), 127);
  EXPECT_EQ(mx_code(kE2M1, ScaleRule::floor, 7.99f), 127) << "more than 6 * 2^0: clips";
  EXPECT_EQ(mx_code(kE2M1, ScaleRule::floor, 8.0f), 128);
  EXPECT_EQ(mx_code(kE4M3, ScaleRule::floor, 511.0f), 127);
  EXPECT_EQ(mx_code(kE4M3, ScaleRule::floor, 512.0f), 128);
}

TEST(MxScaleCeil, IsTheSmallestThatDoesNotClip) {
  for (const Minifloat& element : kMxElements) {
    for (const float amax : telling_maxima(element)) {
      int expected = 0;
      while (e8m0(expected) * static_cast<double>(largest(element)) < static_cast<double>(amax)) {
        ++expected;
      }
      ASSERT_EQ(mx_code(element, ScaleRule::ceil, amax), expected) << amax;
    }
  }
}

TEST(MxScaleEven, IsTheFloorOfTheMaximumRoundedToTheElementsPrecision) {
  for (const Minifloat& element : kMxElements) {
    for (const float amax : telling_maxima(element)) {
      // Subnormal maxima have too few significant bits for this formula.
      if (amax < std::numeric_limits<float>::min()) continue;
      const double ulp = std::ldexp(1.0, std::ilogb(amax) - element.mantissa_bits);
      const double rounded = std::floor(static_cast<double>(amax) / ulp + 0.5) * ulp;
      const int expected = std::ilogb(rounded) - std::ilogb(largest(element)) + 127;
      ASSERT_EQ(mx_code(element, ScaleRule::even, amax), std::clamp(expected, 0, 254)) << amax;
    }
  }
  EXPECT_EQ(mx_code(kE2M1, ScaleRule::even, std::nextafter(7.0f, 0.0f)), 127);
  EXPECT_EQ(mx_code(kE2M1, ScaleRule::even, 7.0f), 128);
}

TEST(MxScale, ClampsItsCodeAtTheSmallestAndStaysBelowNan) {
  constexpr float kMax = std::numeric_limits<float>::max();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  for (const Minifloat& element : kMxElements) {
    for (const ScaleRule rule : {ScaleRule::floor, ScaleRule::even, ScaleRule::ceil}) {
      ASSERT_EQ(mx_code(element, rule, kTiny), 0);
      ASSERT_EQ(mx_scale(element, rule, bits_of(kTiny)).inverse, 0x1p127f);
      ASSERT_LT(mx_code(element, rule, kMax), 0xFF);
      ASSERT_EQ(mx_code(element, rule, kInfinity), 0xFF);
      ASSERT_EQ(mx_scale(element, rule, 0).stored, 0) << "canonical scale of zeros";
    }
  }
}

TEST(MxScale, HasTheExactInverse) {
  for (const Minifloat& element : kMxElements) {
    for (const float amax : telling_maxima(element)) {
      const auto scale = mx_scale(element, ScaleRule::ceil, bits_of(amax));
      ASSERT_EQ(e8m0(scale.stored) * static_cast<double>(scale.inverse), 1.0) << amax;
    }
  }
}

TEST(FormatOfMx, TakesTheCeilingForStochasticDataWhateverWasAsked) {
  for (CodecOptions options : kMxCodecs) {
    options.rounding = Rounding::stochastic;
    options.scale_rule = ScaleRule::floor;
    EXPECT_EQ(format_of(options, DataType::f32).options.scale_rule, ScaleRule::ceil);
  }
}

// ---- float32 ----

TEST(FloatScale, NeverClipsAndIsTheQuotientButForAStep) {
  for (const Minifloat& element : {kE4M3, kE5M2, kE3M0, kInteger8}) {
    for (const float amax : telling_maxima(element)) {
      const BlockScale<float> scale = float_scale(element, bits_of(amax), true);
      const double reach =
          static_cast<double>(scale.stored) * static_cast<double>(largest(element));
      ASSERT_GE(reach, static_cast<double>(amax));
      ASSERT_GE(scale.stored, std::numeric_limits<float>::min()) << "its inverse would overflow";
      ASSERT_TRUE(std::isfinite(scale.inverse) && scale.inverse > 0);
      if (amax < 0x1p-110f) continue;  // limited, because the smallest scale is 2^-126
      ASSERT_LE(reach, static_cast<double>(amax) * (1 + 0x1p-22));
    }
    EXPECT_TRUE(std::isnan(float_scale(element, bits_of(kInfinity), true).stored));
    EXPECT_EQ(float_scale(element, 0, true).stored, 0.0f);
  }
}

// ---- NVFP4 ----

TEST(Nvfp4PacketScale, IsTheSmallestPowerOfTwoUnderWhichTheMaximumFits) {
  const auto check = [](float amax) {
    int expected = kNvfp4PacketCodeMin;
    while (2688.0 * e8m0(expected) < static_cast<double>(amax)) ++expected;
    ASSERT_EQ(nvfp4_packet_code(bits_of(amax)), expected) << amax;
  };
  for (int exponent = -126; exponent < 128; ++exponent) {
    for (const float base : {1.0f, 1.3125f, 1.5f}) {  // 2688 = 1.3125 * 2^11
      const float amax = std::ldexp(base, exponent);
      for (const float x : {std::nextafter(amax, 0.0f), amax, std::nextafter(amax, kInfinity)}) {
        check(x);
      }
    }
  }
  EXPECT_EQ(nvfp4_packet_code(0), 0);
}

TEST(Nvfp4BlockScale, RoundedUpIsTheSmallestThatHoldsTheMaximum) {
  std::vector<float> maxima;
  for (int code = 1; code <= kE4M3.magnitude_max; ++code) {
    const float holds = 6 * magnitude_value(kE4M3, code);
    maxima.insert(maxima.end(), {std::nextafter(holds, 0.0f), holds,
                                 std::nextafter(holds, code < 0x7E ? kInfinity : 0.0f)});
  }
  for (float amax = 0x1p-20f; amax < 2688.0f; amax *= 1.0037f) maxima.push_back(amax);
  for (const float amax : maxima) {
    int expected = 1;  // never 0 for a block that is not zero
    while (6.0 * static_cast<double>(magnitude_value(kE4M3, expected)) <
           static_cast<double>(amax)) {
      ++expected;
    }
    ASSERT_EQ(e4m3_scale_code(amax, true), expected) << amax;
    ASSERT_NEAR(e4m3_scale_code(amax, false), expected, 1);
    ASSERT_EQ(e4m3_scale_code(amax, false), encode_nearest(kE4M3, amax * (1.0f / 6.0f)));
  }
}

// 16 floats, at most `binades` binades below a random maximum.
std::vector<float> random_block(std::uint32_t block, int binades) {
  std::vector<float> values(16);
  for (std::uint32_t i = 0; i < 16; ++i) {
    const std::uint64_t draw = keyed_hash(17, block, i, 0, 0);
    const double exponent = -binades * to_unit(keyed_hash(17, block, i, 1, 0));
    values[i] = static_cast<float>((to_unit(draw) * 2 - 1) * std::exp2(exponent));
  }
  return values;
}

// Returns NVFP4 blocks under one packet maximum, 2688 = 6 * 448 (largest element times largest
// scale). For every E4M3 value v, some blocks have the maximum 6 v, the largest that the scale v
// holds, or a float beside it. The other blocks are random.
std::vector<float> adversarial_blocks() {
  std::vector<float> values;
  for (int code = 1; code <= kE4M3.magnitude_max; ++code) {
    const float holds = 6 * magnitude_value(kE4M3, code);
    for (const float amax : {std::nextafter(holds, 0.0f), holds, std::nextafter(holds, 2688.0f)}) {
      values.insert(values.end(), 15, amax / 3);
      values.push_back(-amax);
    }
  }
  for (std::uint32_t block = 0; block < 256; ++block) {
    for (const float x : random_block(block, static_cast<int>(block % 24)))
      values.push_back(x * 2688);
  }
  return values;
}

struct Reach {
  std::size_t clipped = 0;  // blocks whose maximum is above 6 scales
  std::size_t blocks = 0;
};
Reach reach_of(const CodecOptions& options, std::span<const float> values, double tolerance) {
  const Format format = format_of(options, DataType::f32);
  const std::vector<std::byte> bytes = encoded(format, values);
  double packet = e8m0(static_cast<int>(bytes[0]));
  if (options.codec == Codec::nvfp4_te) {
    float amax = 0;
    std::memcpy(&amax, bytes.data(), sizeof(amax));
    packet = static_cast<double>(amax) / 2688;
  }
  Reach reach;
  for (std::size_t block = 0; block < values.size() / 16; ++block, ++reach.blocks) {
    double amax = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      amax = std::max(amax, std::fabs(static_cast<double>(values[16 * block + i])));
    }
    const int code = static_cast<int>(bytes[format.header_bytes + block]);
    EXPECT_NE(code, 0) << "blank, though not zero";
    reach.clipped += 6 * static_cast<double>(decode(kE4M3, code)) * packet * (1 + tolerance) < amax;
  }
  return reach;
}

TEST(Nvfp4Scales, HoldTheMaximumOfEveryBlockOfStochasticData) {
  const std::vector<float> values = adversarial_blocks();
  for (const double scale : {1.0, 0x1p-30, 0.0123, 3.7e20}) {
    std::vector<float> scaled(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      scaled[i] = static_cast<float>(static_cast<double>(values[i]) * scale);
    }
    CodecOptions options = Codec::nvfp4;
    options.rounding = Rounding::stochastic;
    EXPECT_EQ(reach_of(options, scaled, 0).clipped, 0u) << "exactly";
    options.codec = Codec::nvfp4_te;
    EXPECT_EQ(reach_of(options, scaled, 0x1p-21).clipped, 0u) << "but for TE's three roundings";
  }
}

TEST(Nvfp4Scales, MayClipToNearest) {
  CodecOptions options = Codec::nvfp4;
  options.rounding = Rounding::nearest;
  EXPECT_GT(reach_of(options, adversarial_blocks(), 0).clipped, 0u);
}

std::vector<float> tenths() {
  std::vector<float> values;
  for (int i = 0; i < 16; ++i) values.push_back(static_cast<float>(i / 10.0));
  return values;
}

// The block's maximum is 1.5, so its scale is 1.5 / 6 = 1/4. The stored scale is this times 2688 /
// (tensor maximum). It is 448 if the tensor's maximum is 1.5, too, and 28 for a bound of 24.
TEST(Nvfp4Te, HasTheStoredScalesThatTransformerEngineHas) {
  CodecOptions options = Codec::nvfp4_te;
  options.rounding = Rounding::nearest;
  for (const auto& [bound, stored] : {std::pair(0.0f, 448.0f), std::pair(24.0f, 28.0f)}) {
    options.bound = bound;
    const Format format = format_of(options, DataType::f32);
    const std::vector<std::byte> bytes = encoded(format, tenths());
    EXPECT_EQ(decode(kE4M3, static_cast<int>(bytes[4])), stored);
    const std::vector<float> values = decoded(format, bytes, 16);
    for (std::size_t i = 0; i < 16; ++i) {
      const float expected = decode(kE2M1, encode_nearest(kE2M1, tenths()[i] * 4)) / 4;
      EXPECT_NEAR(values[i], expected, 1e-6f * expected) << i;
    }
  }
  EXPECT_EQ(te_encode_scale(1.5f), 1792.0f);
  EXPECT_EQ(te_encode_scale(24.0f), 112.0f);
  EXPECT_EQ(te_encode_scale(0.0f), 1.0f);
}

// Maxima within three floats of a tie between two E4M3 scales, where the order of operations
// decides which scale results.
std::vector<float> maxima_at_ties(float encode_scale) {
  std::vector<float> maxima;
  for (int code = 8; code < kE4M3.magnitude_max; ++code) {
    const float middle = (magnitude_value(kE4M3, code) + magnitude_value(kE4M3, code + 1)) / 2;
    const std::uint32_t bits = bits_of(middle * 6 / encode_scale);
    for (std::uint32_t near = bits - 3; near <= bits + 3; ++near) {
      maxima.push_back(std::bit_cast<float>(near));
    }
  }
  return maxima;
}

TEST(Nvfp4Te, IsTransformerEnginesOrderOfOperations) {
  int order_decided = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const auto tensor = static_cast<float>(std::exp2(20 * to_unit(keyed_hash(1, i, 0, 0, 0)) - 10));
    const float encode_scale = 448.0f * 6.0f / tensor;
    for (const float amax : maxima_at_ties(encode_scale)) {
      // The rule as published, with each operation rounded to float32.
      const int code = encode_nearest(kE4M3, amax * (encode_scale * (1.0f / 6.0f)));
      const float inverse = 1.0f / (decode(kE4M3, code) * (1.0f / encode_scale));
      const auto scale = te_scale(bits_of(amax), te_encode_scale(tensor), false);
      ASSERT_EQ(scale.stored, code) << amax << " of " << tensor;
      ASSERT_EQ(scale.inverse, inverse) << amax << " of " << tensor;
      order_decided += code != encode_nearest(kE4M3, amax * encode_scale * (1.0f / 6.0f));
    }
  }
  EXPECT_GT(order_decided, 0) << "the maxima tested could not tell";
}

}  // namespace
}  // namespace leeway::codec
