// Tests the promises of a block-scaled packet: where its bytes lie, what non-finite, zero and
// subnormal inputs become, that short packets are the start of long ones, and that nothing clips
// unless it was asked to.
#include "codec/scaled.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/philox.h"
#include "codec/minifloat.h"
#include "codec/scaled_layout.h"
#include "unit/codec/round_trip.h"

namespace leeway::codec {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> uniform(std::size_t count, float largest, std::uint32_t stream = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double unit = to_unit(keyed_hash(23, static_cast<std::uint32_t>(i), stream, 0, 0));
    values[i] = static_cast<float>((2 * unit - 1) * static_cast<double>(largest));
  }
  return values;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

// ---- zeros ----

TEST(Scaled, ZerosOfEitherSignAreZeroBytes) {
  for (const Format& format : all_scaled_formats()) {
    for (const float zero : {0.0f, -0.0f}) {
      const std::vector<std::byte> bytes = encoded(format, std::vector<float>(300, zero));
      ASSERT_TRUE(std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; }))
          << name_of(format);
    }
    EXPECT_TRUE(same_bits(sent(format, std::vector<float>(300)), std::vector<float>(300)));
  }
}

TEST(Scaled, MinusZeroBesideOtherValuesKeepsItsSignWhereTheElementsHaveOne) {
  for (const Format& format : all_scaled_formats()) {
    const std::vector<float> received = sent(format, std::vector<float>{1.0f, -0.0f, 0.0f, -1.0f});
    const Codec codec = format.options.codec;
    const bool one_zero = codec == Codec::luq || codec == Codec::int8;
    EXPECT_EQ(received[1], 0.0f) << name_of(format);
    EXPECT_EQ(std::signbit(received[1]), !one_zero) << name_of(format);
    EXPECT_FALSE(std::signbit(received[2])) << name_of(format);
  }
}

// ---- ties ----

// Returns an element's scale (its block's, or the packet's), as the packet in `bytes` states it.
double scale_of(const Format& format, std::span<const std::byte> bytes, std::size_t element) {
  const ScaledLayout layout = scaled_layout(format.options.codec);
  const std::size_t block = layout.block == 0 ? 0 : element / layout.block;
  const std::byte* const at =
      bytes.data() +
      (layout.block == 0 ? 0 : format.header_bytes + block * scale_bytes(layout.block_scale));
  if (layout.packet_scale == ScaleKind::power_of_two) {
    return static_cast<double>(decode(kE4M3, std::to_integer<int>(*at))) *
           e8m0_value(std::to_integer<int>(bytes[0]));
  }
  if (layout.block_scale == ScaleKind::power_of_two) return e8m0_value(std::to_integer<int>(*at));
  float scale = 0;
  std::memcpy(&scale, at, sizeof scale);
  return scale;
}

// Finds the nearest code in exact arithmetic. The products that it needs, of a scale and half of a
// code's value, fit a double.
class ExactlyNearest {
 public:
  explicit ExactlyNearest(const Minifloat& element) {
    for (int code = 0; code <= element.magnitude_max; ++code) {
      values_.push_back(magnitude_value(element, code));
      if (code > 0) ties_.push_back((values_.back() + values_[values_.size() - 2]) / 2);
    }
  }
  double tie(std::size_t code) const { return ties_[code]; }
  std::size_t size() const { return ties_.size(); }

  // Returns true if `received` is the value of the nearest code, or of the even one at a tie. If x
  // is closer to a tie than float32 can tell, both neighbours are right.
  bool holds(double x, double scale, double received) const {
    const auto at = std::partition_point(ties_.begin(), ties_.end(),
                                         [&](double tie) { return tie * scale < std::abs(x); });
    auto code = static_cast<std::size_t>(at - ties_.begin());
    if (at != ties_.end() && *at * scale == std::abs(x)) code += code % 2;
    if (is(received, code, scale)) return true;
    return (code > 0 && beside(x, ties_[code - 1] * scale) && is(received, code - 1, scale)) ||
           (at != ties_.end() && beside(x, *at * scale) && is(received, code + 1, scale));
  }

 private:
  bool is(double received, std::size_t code, double scale) const {
    return std::abs(received) == static_cast<float>(values_[code] * scale);
  }
  static bool beside(double x, double tie) {
    return std::abs(x) != tie && std::abs(std::abs(x) - tie) < 0x1p-21 * tie;
  }

  std::vector<double> values_;
  std::vector<double> ties_;
};

// Blocks whose largest element is `largest`. Their other elements are all bfloat16 values from
// `least` to `largest`, some negative.
std::vector<float> bfloats_below(float largest, float least, std::size_t block) {
  std::vector<float> values;
  for (std::uint32_t bits = std::bit_cast<std::uint32_t>(least) >> 16;; ++bits) {
    const auto value = std::bit_cast<float>(bits << 16);
    if (value > largest) return values;
    if (values.size() % block == 0) values.push_back(largest);
    values.push_back(bits % 3 == 0 ? -value : value);
  }
}

// Multiplying by the scale's rounded inverse, instead of dividing by the scale, put 152 of 262,144
// values on the wrong side of a tie.
TEST(Scaled, TheNearestCodeIsThatOfTheExactQuotient) {
  for (const Codec codec : {Codec::nvfp4, Codec::fp8_e4m3, Codec::fp8_e5m2, Codec::fp8_e4m3_block,
                            Codec::fp8_e5m2_block, Codec::int8, Codec::mxfp4, Codec::mxfp8_e4m3}) {
    const Format format = nearest(CodecOptions(codec));
    const ScaledLayout layout = scaled_layout(codec);
    const ExactlyNearest oracle(layout.element);
    const std::size_t elements_max = 2048;
    std::size_t at_ties = 0;
    // The first 127 scales have all significands of E4M3, and longer ones. The others are
    // fractional powers of two.
    for (int i = 1; i < 192; ++i) {
      const double scale = (i < 128 ? i : std::exp2(i / 9.0)) * 0x1p-9;
      const float most = static_cast<float>(scale * largest(layout.element));
      const auto least = static_cast<float>(scale * oracle.tie(0) / 4);
      const std::vector<float> values =
          bfloats_below(most, least, layout.block == 0 ? elements_max : layout.block);
      for (std::size_t first = 0; first < values.size(); first += elements_max) {
        const auto packet =
            std::span(values).subspan(first, std::min(elements_max, values.size() - first));
        const std::vector<std::byte> bytes = encoded(format, packet);
        const std::vector<float> received = decoded(format, bytes, packet.size());
        for (std::size_t at = 0; at < packet.size(); ++at) {
          const double own = scale_of(format, bytes, at);
          ASSERT_TRUE(oracle.holds(packet[at], own, received[at]))
              << name_of(format) << ": " << packet[at] << " over " << own << " became "
              << received[at] / own;
          const double quotient = std::abs(packet[at]) / own;
          for (std::size_t code = 0; code < std::min<std::size_t>(oracle.size(), 16); ++code)
            at_ties += quotient == oracle.tie(code) && quotient * own == std::abs(packet[at]);
        }
      }
    }
    EXPECT_GT(at_ties, 100u) << name_of(format) << ": the values tested could not tell";
  }
}

// ---- infinities and NaN ----

TEST(Scaled, NonFinitePoisonsExactlyItsBlock) {
  for (const Format& format : in_both_roundings(kBlockScaledCodecs)) {
    for (const float poison : {kNan, -kNan, std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity()}) {
      const std::size_t block = format.block_elements;
      std::vector<float> values = uniform(3 * block + block / 2, 3.0f);
      std::vector<float> without = values;
      std::fill_n(without.begin() + static_cast<std::ptrdiff_t>(block), block, 0.0f);
      values[block] = 1e30f;  // such a value stays out of every scale, too
      values[2 * block - 1] = poison;
      std::vector<float> expected = sent(format, without);
      const std::vector<float> received = sent(format, values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool in_block = i / block == 1;
        ASSERT_EQ(std::isnan(received[i]), in_block) << name_of(format) << " " << i;
        if (in_block) continue;
        ASSERT_EQ(received[i], expected[i]) << name_of(format) << " " << i;
      }
    }
  }
}

TEST(Scaled, NonFinitePoisonsThePacketWhereItHasOneScale) {
  for (CodecOptions options : kPacketScaledCodecs) {
    for (const float bound : {0.0f, 4.0f}) {
      options.bound = bound;
      for (const float poison : {kNan, -kNan, std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity()}) {
        std::vector<float> values = uniform(100, 3.0f);
        values[57] = poison;
        const std::vector<float> received = sent(stochastic(options), values);
        ASSERT_TRUE(std::ranges::all_of(received, [](float x) { return std::isnan(x); }))
            << to_string(options);
      }
    }
  }
}

TEST(Scaled, ThePoisonSurvivesAccumulation) {
  for (const Format& format : all_scaled_formats()) {
    std::vector<float> values = uniform(32, 1.0f);
    values[3] = std::numeric_limits<float>::infinity();
    std::vector<float> sum(32, 1.0f);
    accumulate(format, encoded(format, values), 0.25f, sum);
    for (std::size_t i = 0; i < 16; ++i) ASSERT_TRUE(std::isnan(sum[i])) << name_of(format);
  }
}

// ---- sizes of values ----

TEST(Scaled, SubnormalBlocksBecomeWhatTheirSmallestScaleCanHold) {
  for (const Format& format : all_scaled_formats()) {
    for (const float largest : {0x1p-149f, 0x1p-140f, 0x1p-130f, 0x1p-126f, 0x1p-120f}) {
      const std::vector<float> values = uniform(300, largest);
      const std::vector<float> received = sent(format, values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        // Half of `largest` covers half a quantum of formats with two bits of precision, and LUQ's
        // whole quantum. Smaller blocks err by the smallest scale at most.
        const float allowed = std::max(largest / 2, 0x1p-126f);
        ASSERT_LE(std::fabs(received[i] - values[i]), allowed) << name_of(format) << " " << largest;
      }
    }
  }
}

TEST(Scaled, LargeFloatsStayFiniteAndTheLargestMayRoundToInfinityAsInBfloat16) {
  constexpr float kMax = std::numeric_limits<float>::max();
  for (const Format& format : all_scaled_formats()) {
    const std::vector<float> large = sent(format, std::vector<float>{kMax / 4, -kMax / 4, 0});
    ASSERT_NEAR(large[0] / kMax, 0.25f, 0.07f) << name_of(format);
    ASSERT_NEAR(large[1] / kMax, -0.25f, 0.07f) << name_of(format);
    ASSERT_EQ(large[2], 0.0f);
    const std::vector<float> largest = sent(format, std::vector<float>{kMax, -kMax});
    ASSERT_GT(largest[0], 0.7f * kMax) << name_of(format);
    ASSERT_LT(largest[1], -0.7f * kMax) << name_of(format);
  }
}

TEST(Scaled, ABoundClipsWhatIsLargerAndNothingElse) {
  for (CodecOptions options : {Codec::fp8_e4m3, Codec::fp8_e5m2, Codec::int8, Codec::luq}) {
    options.bound = 2.0f;
    const std::vector<float> received =
        sent(stochastic(options), std::vector<float>{2.0f, 5.0f, -1e30f, 1.0f, -2.0f});
    const float step = 2e-6f;  // the scale is a float: its product with the largest element rounds
    EXPECT_NEAR(received[0], 2.0f, step) << to_string(options);
    EXPECT_NEAR(received[1], 2.0f, step) << to_string(options);
    EXPECT_NEAR(received[2], -2.0f, step) << to_string(options);
    EXPECT_NEAR(received[3], 1.0f, options.codec == Codec::int8 ? 2.0f / 127 : step);
    EXPECT_NEAR(received[4], -2.0f, step) << to_string(options);
  }
}

TEST(Scaled, ABoundSetsTheScaleOfThePacketAndNotOfItsBlocks) {
  CodecOptions options = Codec::nvfp4_te;
  options.bound = 2.0f;
  EXPECT_NEAR(sent(nearest(options), std::vector<float>{5.0f})[0], 2.0f, 2e-6f);
  EXPECT_NEAR(sent(nearest(options), std::vector<float>{1.0f})[0], 1.0f, 1e-6f);
  // NVFP4's packet scale is a power of two. The smallest one for the bound 2 is 2^-10, which
  // reaches up to 2688 * 2^-10 = 2.625.
  options.codec = Codec::nvfp4;
  EXPECT_EQ(sent(nearest(options), std::vector<float>{5.25f})[0], 2.625f);
  EXPECT_EQ(sent(nearest(options), std::vector<float>{0.75f})[0], 0.75f);
  EXPECT_EQ(sent(nearest(Codec::nvfp4), std::vector<float>{5.25f, 0.75f})[0], 5.25f) << "no bound";
}

TEST(Scaled, ClippedInt8TakesItsScaleFromTheMeanMagnitude) {
  CodecOptions options = Codec::int8;
  options.clip = true;
  std::vector<float> values(1024, 1.0f);
  values[7] = -1000.0f;
  const float mean = (1023.0f + 1000.0f) / 1024;
  const std::vector<float> received = sent(nearest(options), values);
  // The optimal clipping limit for 8 bits of Laplace data is 9.89675982 mean magnitudes (arXiv
  // 1810.05723, table of alpha*/b).
  EXPECT_NEAR(received[7], -9.89675982f * mean, 1e-3f);
  EXPECT_NEAR(received[0], 1.0f, 9.9f * mean / 127 / 2);
  EXPECT_NEAR(sent(nearest(Codec::int8), values)[7], -1000.0f, 1e-3f) << "only if asked to";
  values[7] = 1.0f;
  EXPECT_NEAR(sent(nearest(options), values)[0], 1.0f, 1e-6f) << "no wider than the maximum";
}

// ---- lengths ----

TEST(Scaled, EveryLengthIsEncodedAsIfZerosFilledItsLastBlock) {
  const std::vector<float> values = uniform(512, 2.0f);
  for (const Format& format : all_scaled_formats()) {
    for (std::size_t count = 1; count <= 300; ++count) {
      std::vector<float> padded(values.begin(),
                                values.begin() + static_cast<std::ptrdiff_t>(count));
      padded.resize(format.blocks(count) * format.block_elements);
      const std::vector<std::byte> bytes = encoded(format, std::span(values).first(count));
      ASSERT_EQ(bytes, encoded(format, padded)) << name_of(format) << " " << count;
      const std::vector<float> whole = decoded(format, bytes, padded.size());
      ASSERT_TRUE(same_bits(decoded(format, bytes, count), std::span(whole).first(count)))
          << name_of(format) << " " << count;
    }
  }
}

TEST(Scaled, ATensorInPacketsIsEachPacketByItself) {
  const std::vector<float> values = uniform(1024, 2.0f);
  for (const Format& format : all_scaled_formats()) {
    const Place place{.seed = 4, .step = 2, .source = 1, .first_element = 512};
    const std::span second = std::span(values).subspan(512, 256);
    const std::vector<std::byte> bytes = encoded(format, second, place);
    // Decoding needs only the packet: neither its place nor other packets.
    const std::vector<float> elsewhere =
        decoded(format, bytes, 256, {.seed = 9, .step = 8, .source = 7, .first_element = 6400});
    ASSERT_TRUE(same_bits(elsewhere, decoded(format, bytes, 256, place))) << name_of(format);
    for (std::size_t i = 0; i < 256; ++i) {
      ASSERT_NEAR(elsewhere[i], second[i], format.options.codec == Codec::luq ? 1.01f : 0.68f)
          << name_of(format);
    }
  }
}

// ---- what is done with bytes ----

TEST(Scaled, AccumulationMultipliesAndThenAddsWhatDecodingGives) {
  const std::vector<float> values = uniform(300, 2.0f);
  for (const Format& format : all_scaled_formats()) {
    const std::vector<std::byte> bytes = encoded(format, values);
    const std::vector<float> single = decoded(format, bytes, 300);
    std::vector<float> sum = uniform(300, 5.0f, 1);
    std::vector<float> expected = sum;
    for (std::size_t i = 0; i < 300; ++i)
      expected[i] += 0.25f * single[i];  // a power of two: exact
    accumulate(format, bytes, 0.25f, sum);
    ASSERT_TRUE(same_bits(sum, expected)) << name_of(format);
    for (std::size_t i = 0; i < 300; ++i) expected[i] = 0.25f * single[i];
    accumulate_first(format, bytes, 0.25f, sum);
    ASSERT_TRUE(same_bits(sum, expected)) << name_of(format);
  }
}

TEST(Scaled, AnyBytesDecode) {
  for (const Format& format : all_scaled_formats()) {
    for (std::size_t count = 0; count < 300; count += 7) {
      std::vector<std::byte> bytes(format.encoded_bytes(count));
      for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(
            keyed_hash(1, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(count), 0, 0));
      }
      ASSERT_EQ(decoded(format, bytes, count).size(), count);
      std::vector<float> sum(count);
      accumulate(format, bytes, 0.5f, sum);
    }
  }
}

}  // namespace
}  // namespace leeway::codec
