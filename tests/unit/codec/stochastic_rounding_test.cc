// Proves that stochastic rounding is unbiased by summing over all 256 random bytes: for single
// elements, for LUQ's levels, and through whole encoders.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "codec/minifloat.h"
#include "codec/random_bytes.h"
#include "unit/codec/element_tables.h"
#include "unit/codec/round_trip.h"

namespace leeway::codec {
namespace {

constexpr int kBytes = 256;               // values of a random byte
constexpr double kBiasMax = 1.0 / 512.0;  // quanta: fractions are rounded to 1/256

// ---- one element ----

// Returns points of [low, high]: both ends, and three points in one of every four of its 256 parts.
// The three are a point inside, the middle (where the fraction is a tie) and the float above the
// middle.
std::vector<float> points_between(float low, float high) {
  std::vector<float> points = {low, high};
  for (int i = 0; i < 64; ++i) {
    const int at = 4 * i + i % 4;
    const double step = (static_cast<double>(high) - static_cast<double>(low)) / kBytes;
    const auto middle = static_cast<float>(low + (at + 0.5) * step);
    points.insert(points.end(), {static_cast<float>(low + (at + 0.3) * step), middle,
                                 std::nextafter(middle, high)});
  }
  return points;
}

struct Enumerated {
  double mean = 0;      // over all bytes
  bool within = true;   // no byte led to a value beyond the neighbours
  bool settled = true;  // all bytes led to the same value
};
Enumerated over_all_bytes(const Minifloat& format, float x, float low, float high) {
  Enumerated result;
  double sum = 0;
  const float first = decode(format, encode_stochastic(format, x, 0));
  for (int byte = 0; byte < kBytes; ++byte) {
    const float q = decode(format, encode_stochastic(format, x, static_cast<std::uint8_t>(byte)));
    result.within &= std::fabs(q) == low || std::fabs(q) == high;
    result.settled &= q == first;
    sum += static_cast<double>(q);
  }
  result.mean = sum / kBytes;
  return result;
}

void expect_unbiased_between(const Minifloat& format, int code) {
  const float low = magnitude_value(format, code);
  const float high = magnitude_value(format, code + 1);
  const double bias_max = kBiasMax * static_cast<double>(high - low);
  for (const float magnitude : points_between(low, high)) {
    for (const float x : {magnitude, -magnitude}) {
      const Enumerated all = over_all_bytes(format, x, low, high);
      ASSERT_LE(std::fabs(all.mean - static_cast<double>(x)), bias_max) << x;
      ASSERT_TRUE(all.within) << x;
      if (magnitude == low || magnitude == high) {
        ASSERT_TRUE(all.settled && all.mean == static_cast<double>(x)) << x;
      }
    }
  }
}

TEST(MinifloatEncodeStochastic, IsUnbiasedBetweenAllNeighboursOfEveryFormat) {
  for (const ElementTable& table : element_tables()) {
    SCOPED_TRACE(table.name);
    for (int code = 0; code < table.format.magnitude_max; ++code) {
      expect_unbiased_between(table.format, code);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(MinifloatEncodeStochastic, NeverMovesAValueOfTheFormatAndKeepsItsSign) {
  for (const ElementTable& table : element_tables()) {
    for (int magnitude = 0; magnitude <= table.format.magnitude_max; ++magnitude) {
      for (const int code : {magnitude, magnitude | table.sign_bit()}) {
        for (int byte = 0; byte < kBytes; ++byte) {
          ASSERT_EQ(encode_stochastic(table.format, decode(table.format, code),
                                      static_cast<std::uint8_t>(byte)),
                    code)
              << table.name;
        }
      }
    }
  }
}

TEST(MinifloatEncodeStochastic, RoundsUpMoreOftenTheCloserTheUpperNeighbour) {
  int above = 0;
  for (int fraction = 0; fraction <= kBytes; ++fraction) {
    const float x = 2.0f + static_cast<float>(fraction) / kBytes;
    int ups = 0;
    for (int byte = 0; byte < kBytes; ++byte) {
      ups += encode_stochastic(kE2M1, x, static_cast<std::uint8_t>(byte)) == 5;
    }
    ASSERT_EQ(ups, fraction);
    above += ups;
  }
  EXPECT_EQ(above, kBytes * (kBytes + 1) / 2);
}

TEST(MinifloatEncodeStochastic, StaysAtTheLargestValueWhateverTheByte) {
  for (const ElementTable& table : element_tables()) {
    const float above = std::nextafter(largest(table.format), 1e30f);
    ASSERT_EQ(encode_stochastic(table.format, above, 255), table.format.magnitude_max);
    ASSERT_EQ(encode_stochastic(table.format, 1e30f, 255), table.format.magnitude_max);
  }
}

// ---- LUQ's levels ----

struct LuqVector {
  float x;
  double mean;
  double variance;
};
// LUQ's means and variances under a packet maximum of 1. Levels go down to 1/64 (arXiv 2112.10769,
// section 4, for three exponent bits with one zero). The variance is (high - |x|)(|x| - low)
// between the levels around |x|.
constexpr LuqVector kLuqVectors[] = {{0.3f, 0.3, 0.01},       {0.1f, 0.1, 9.375e-4},
                                     {0.01f, 0.01, 5.625e-5}, {0.005f, 0.005, 5.3125e-5},
                                     {-0.2f, -0.2, 0.00375},  {1.0f, 1.0, 0}};

double luq_quantum(float x) {
  const double magnitude = std::fabs(static_cast<double>(x));
  return magnitude < 1.0 / 64 ? 1.0 / 64 : std::exp2(std::floor(std::log2(magnitude)));
}

TEST(Luq, HasThePublishedExpectationAndVarianceOverAllBytes) {
  for (const LuqVector& vector : kLuqVectors) {
    double sum = 0;
    double squares = 0;
    for (int byte = 0; byte < kBytes; ++byte) {
      const int code = encode_stochastic(kE3M0, vector.x * 64, static_cast<std::uint8_t>(byte));
      const double q = static_cast<double>(decode(kE3M0, code)) / 64;
      sum += q;
      squares += (q - vector.mean) * (q - vector.mean);
    }
    const double quantum = luq_quantum(vector.x);
    EXPECT_NEAR(sum / kBytes, vector.mean, kBiasMax * quantum) << vector.x;
    // A probability wrong by 1/512 changes the variance by at most that much of a squared quantum.
    EXPECT_NEAR(squares / kBytes, vector.variance, kBiasMax * quantum * quantum) << vector.x;
  }
}

// Returns the mean squared error of encoding `count` copies of x under a packet maximum of 1.
double luq_variance(float x, std::uint8_t draws, std::size_t count) {
  CodecOptions options(Codec::luq);
  options.draws = draws;
  const Format format = stochastic(options);
  std::vector<float> values(count, x);
  values[0] = 1.0f;
  std::vector<std::byte> bytes(format.encoded_bytes(count));
  std::vector<float> decoded(count);
  const Place place{.seed = 11};
  encode(format, values, place, bytes);
  decode(format, bytes, place, decoded);
  EXPECT_EQ(decoded[0], 1.0f);
  double squares = 0;
  for (const float q : decoded) {
    if (q != 1.0f) squares += std::pow(static_cast<double>(q) - static_cast<double>(x), 2);
  }
  return squares / static_cast<double>(count - 1);
}

TEST(Luq, DrawsAveragedDivideTheVariance) {
  constexpr std::size_t kCount = 16384;
  for (const LuqVector& vector : {kLuqVectors[0], kLuqVectors[1], kLuqVectors[2]}) {
    for (const std::uint8_t draws : {1, 2, 3, 4}) {
      // Kurtoses are below 3.3, so a variance of 16,384 draws has a standard error below
      // sqrt((kurtosis - 1) / n) = 1.2 %. The tolerance is four times that, plus the bytes'
      // resolution.
      EXPECT_NEAR(luq_variance(vector.x, draws, kCount) * draws / vector.variance, 1.0, 0.055)
          << vector.x << ", " << int{draws} << " draws";
    }
  }
}

// ---- whole blocks ----

// Returns 256 places that give element `element` each value of its random byte, so that a sum over
// the places is a sum over all bytes.
std::vector<Place> places_of_all_bytes(std::size_t element) {
  std::map<std::uint8_t, Place> found;
  for (std::uint32_t step = 0; found.size() < kBytes; ++step) {
    const Place place{.seed = 99, .step = step, .source = 2};
    const auto bytes = random_bytes(place, kRoundingStream, element / kRandomBlockElements);
    found.emplace(bytes[element % kRandomBlockElements], place);
  }
  std::vector<Place> places;
  for (const auto& [byte, place] : found) places.push_back(place);
  return places;
}

constexpr Codec kScaledCodecs[] = {
    Codec::fp8_e4m3,   Codec::fp8_e5m2,   Codec::fp8_e4m3_block, Codec::fp8_e5m2_block,
    Codec::mxfp8_e4m3, Codec::mxfp8_e5m2, Codec::mxfp6_e2m3,     Codec::mxfp6_e3m2,
    Codec::mxfp4,      Codec::nvfp4,      Codec::nvfp4_te,       Codec::luq,
    Codec::int8,
};

// Returns the largest |mean - x|, in quanta, over inputs x up to the block's maximum `maximum`. The
// quantum is the distance between the two decoded values. If there is only one value, the quantum
// is |x|, which is no less.
double worst_block_bias(Codec codec, float maximum) {
  constexpr std::size_t kElement = 21;  // the second random block
  constexpr std::size_t kCount = 32;
  static const std::vector<Place> kPlaces = places_of_all_bytes(kElement);
  const Format format = stochastic(codec);
  std::vector<std::byte> bytes(format.encoded_bytes(kCount));
  std::vector<float> decoded(kCount);
  double worst = 0;
  for (int i = 1; i <= 24; ++i) {
    const float x = maximum * static_cast<float>(i % 2 == 0 ? i / 24.0 : -std::exp2(-i / 4.0));
    std::vector<float> values(kCount, x);
    values[kElement - 1] = maximum;
    double sum = 0;
    std::set<float> seen;
    for (const Place& place : kPlaces) {
      encode(format, values, place, bytes);
      decode(format, bytes, place, decoded);
      sum += static_cast<double>(decoded[kElement]);
      seen.insert(decoded[kElement]);
    }
    EXPECT_LE(seen.size(), 2u) << "beyond a neighbour";
    const double quantum = seen.size() == 2 ? static_cast<double>(*seen.rbegin() - *seen.begin())
                                            : std::fabs(static_cast<double>(x));
    worst = std::max(worst, std::fabs(sum / kBytes - static_cast<double>(x)) / quantum);
  }
  return worst;
}

TEST(EncodeStochastic, IsUnbiasedThroughEveryBlockEncoder) {
  for (const Codec codec : kScaledCodecs) {
    // Dividing an element by its scale in float32 adds up to 2^-16 quanta.
    for (const float maximum : {1.0f, 0.777f, 5.03e-12f}) {
      EXPECT_LE(worst_block_bias(codec, maximum), kBiasMax + 0x1p-16)
          << to_string(codec) << " " << maximum;
    }
  }
}

}  // namespace
}  // namespace leeway::codec
