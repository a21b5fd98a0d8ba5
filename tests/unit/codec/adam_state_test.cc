#include "leeway/adam_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "codec/minifloat.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace leeway {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kFloatMax = std::numeric_limits<float>::max();
constexpr float kSmallestE4M3 = 0x1p-9f;
constexpr float kSmallestE5M2 = 0x1p-16f;

struct Encoded {
  std::vector<std::uint8_t> codes;
  float scale = 0.0f;
};

Encoded first(const std::vector<float>& moment, const AdamState8Options& options = {}) {
  Encoded encoded{std::vector<std::uint8_t>(moment.size())};
  encoded.scale = encode_adam_first(moment, encoded.codes, options).value();
  return encoded;
}
Encoded second(const std::vector<float>& moment, const AdamState8Options& options = {}) {
  Encoded encoded{std::vector<std::uint8_t>(moment.size())};
  encoded.scale = encode_adam_second(moment, encoded.codes, options).value();
  return encoded;
}
std::vector<float> decoded_first(const Encoded& encoded) {
  std::vector<float> moment(encoded.codes.size());
  EXPECT_TRUE(decode_adam_first(encoded.codes, encoded.scale, moment).ok());
  return moment;
}
std::vector<float> decoded_second(const Encoded& encoded) {
  std::vector<float> moment(encoded.codes.size());
  EXPECT_TRUE(decode_adam_second(encoded.codes, encoded.scale, moment).ok());
  return moment;
}

std::vector<float> normal(std::size_t count, float size) {
  std::mt19937 random(11);
  std::normal_distribution<float> value(0.0f, size);
  std::vector<float> values(count);
  for (float& x : values) x = value(random);
  return values;
}

TEST(AdamStateScale, IsTheRangeOverTheLargest) {
  EXPECT_EQ(first({-3.0f, 1.0f}).scale, 448.0f / 3.0f);
  EXPECT_EQ(first({-3.0f, 1.0f}, {.first_max = 240.0f}).scale, 80.0f);
  EXPECT_EQ(second({3.0f, 1.0f}).scale, 57344.0f / 3.0f);  // 19114.667
}

TEST(AdamStateScale, RoundsDownToAPowerOfTwo) {
  const AdamState8Options options{.first_max = 240.0f, .power_of_two_scale = true};
  EXPECT_EQ(first({3.0f}, options).scale, 64.0f);
  EXPECT_EQ(second({3.0f}, options).scale, 16384.0f);
}

TEST(AdamStateScale, IsOneForZerosAndForNothing) {
  EXPECT_EQ(first({0.0f, -0.0f}).scale, 1.0f);
  EXPECT_EQ(second({}).scale, 1.0f);
  EXPECT_EQ(second({}, {.power_of_two_scale = true}).scale, 1.0f);
}

TEST(AdamStateScale, StaysInRangeAtTheEndsOfFloat) {
  for (const bool power_of_two : {false, true}) {
    for (const float x : {std::numeric_limits<float>::denorm_min(), 1e-37f, kFloatMax}) {
      for (const Encoded& encoded : {first({x}, {.power_of_two_scale = power_of_two}),
                                     second({x}, {.power_of_two_scale = power_of_two})}) {
        EXPECT_TRUE(std::isnormal(encoded.scale) && encoded.scale > 0.0f) << x;
      }
    }
  }
}

// Encodes the values of all 256 codes. Their largest makes the scale 1, so every finite value must
// get its own code again. Codes without a finite value must become NaN.
void expect_every_code_kept(const codec::Minifloat& format,
                            Encoded (*encode)(const std::vector<float>&, const AdamState8Options&),
                            std::vector<float> (*decode)(const Encoded&)) {
  std::vector<float> values;
  for (int code = 0; code < 256; ++code) values.push_back(codec::decode(format, code));
  const Encoded encoded = encode(values, {});
  EXPECT_EQ(encoded.scale, 1.0f);
  const std::vector<float> back = decode(encoded);
  for (std::size_t code = 0; code < 256; ++code) {
    if (std::isfinite(values[code])) {
      EXPECT_EQ(encoded.codes[code], code);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(back[code]),
                std::bit_cast<std::uint32_t>(values[code]));
    } else {
      EXPECT_EQ(encoded.codes[code], 0x7F);
      EXPECT_TRUE(std::isnan(back[code]));
    }
  }
}

TEST(AdamStateRoundTrip, KeepsEveryCode) {
  expect_every_code_kept(codec::kE4M3, first, decoded_first);
  expect_every_code_kept(codec::kE5M2, second, decoded_second);
}

// Codes with 3 mantissa bits are at most 1/8 of the value apart, and those of the second moment,
// with 2 bits, at most 1/4. The error is half of that at most, plus half the smallest subnormal.
TEST(AdamStateRoundTrip, ErrsByHalfAStepAtMost) {
  const std::vector<float> moment = normal(5000, 0.01f);
  const Encoded one = first(moment);
  const std::vector<float> back = decoded_first(one);
  const Encoded two = second(moment);
  const std::vector<float> back_two = decoded_second(two);
  for (std::size_t i = 0; i < moment.size(); ++i) {
    const float size = std::abs(moment[i]) * 1.00001f;
    EXPECT_LE(std::abs(back[i] - moment[i]), size / 16 + kSmallestE4M3 / one.scale / 2);
    EXPECT_LE(std::abs(back_two[i] - moment[i]), size / 8 + kSmallestE5M2 / two.scale / 2);
  }
}

TEST(AdamStateRoundTrip, StaysFiniteAtTheEndOfFloat) {
  // The power-of-two scale maps the largest float just below 256, which rounds up to 256. Decoding
  // must not overflow to infinity.
  const Encoded encoded = first({kFloatMax, -kFloatMax}, {.power_of_two_scale = true});
  EXPECT_EQ(decoded_first(encoded), (std::vector<float>{kFloatMax, -kFloatMax}));
}

TEST(AdamStateNonFinite, BecomesNaNAndLeavesTheScaleAlone) {
  const std::vector<float> moment{kInfinity, 3.0f, -kInfinity, kNaN, -1.5f};
  for (const AdamState8Options& options :
       {AdamState8Options{}, AdamState8Options{.stochastic_flush = true}}) {
    const std::vector<float> one = decoded_first(first(moment, options));
    const std::vector<float> two = decoded_second(second(moment, options));
    for (const std::size_t broken : {0u, 2u, 3u}) {
      EXPECT_TRUE(std::isnan(one[broken]));
      EXPECT_TRUE(std::isnan(two[broken]));
    }
    EXPECT_FLOAT_EQ(one[1], 3.0f);
    EXPECT_FLOAT_EQ(one[4], -1.5f);
    EXPECT_FLOAT_EQ(two[4], -1.5f);
  }
}

TEST(AdamStateNonFinite, InfinitiesOfE5M2Decode) {
  const std::vector<float> back = decoded_second({{0x7C, 0xFC, 0x7D}, 2.0f});
  EXPECT_EQ(back[0], kInfinity);
  EXPECT_EQ(back[1], -kInfinity);
  EXPECT_TRUE(std::isnan(back[2]));
}

// Returns `largest`, which must make the scale 1, and then `count` elements `small`, which must lie
// below the smallest subnormal.
std::vector<float> underflowing(float largest, float small, std::size_t count) {
  std::vector<float> values(count + 1, small);
  values[0] = largest;
  return values;
}

std::size_t kept(const Encoded& encoded, int code) {
  std::size_t count = 0;
  for (std::size_t i = 1; i < encoded.codes.size(); ++i) {
    EXPECT_TRUE(encoded.codes[i] == code || encoded.codes[i] == (code & 0x80));
    count += encoded.codes[i] == code ? 1 : 0;
  }
  return count;
}

TEST(AdamStateFlush, KeepsWithTheProbabilityThatMakesItUnbiased) {
  constexpr std::size_t kCount = 20000;
  const AdamState8Options options{.stochastic_flush = true, .seed = 5, .step = 9};
  for (const double part : {0.05, 0.3, 0.75}) {
    const double sigma = std::sqrt(part * (1 - part) * kCount);
    const auto of = [part](float smallest) { return static_cast<float>(part) * smallest; };
    EXPECT_NEAR(kept(first(underflowing(448.0f, of(kSmallestE4M3), kCount), options), 0x01),
                part * kCount, 4 * sigma);
    EXPECT_NEAR(kept(first(underflowing(448.0f, -of(kSmallestE4M3), kCount), options), 0x81),
                part * kCount, 4 * sigma);
    EXPECT_NEAR(kept(second(underflowing(57344.0f, of(kSmallestE5M2), kCount), options), 0x01),
                part * kCount, 4 * sigma);
  }
}

TEST(AdamStateFlush, LeavesZerosAndLargerValuesToNearest) {
  std::vector<float> moment = underflowing(448.0f, 0.0f, 50);
  for (std::size_t i = 10; i < 40; ++i) moment[i] = kSmallestE4M3 * static_cast<float>(i) / 8.0f;
  moment.resize(40);
  EXPECT_EQ(first(moment, {.stochastic_flush = true}).codes, first(moment).codes);
}

TEST(AdamStateFlush, DependsOnTheElementsPlaceAndNotOnTheSpan) {
  const std::vector<float> whole = underflowing(448.0f, 0.5f * kSmallestE4M3, 400);
  std::vector<float> tail(whole.begin() + 101, whole.end());
  tail.back() = 448.0f;  // the same scale
  const AdamState8Options options{.stochastic_flush = true, .seed = 1, .first_element = 1000};
  AdamState8Options tail_options = options;
  tail_options.first_element += 101;
  const Encoded all = first(whole, options);
  const Encoded part = first(tail, tail_options);
  EXPECT_TRUE(std::equal(part.codes.begin(), part.codes.end() - 1, all.codes.begin() + 101));
}

TEST(AdamStateFlush, DrawsAnewByStepSeedPlaceAndMoment) {
  constexpr std::size_t kCount = 256;
  const AdamState8Options base{.stochastic_flush = true, .seed = 3, .step = 4};
  const std::vector<float> one = underflowing(448.0f, 0.5f * kSmallestE4M3, kCount);
  const std::vector<float> two = underflowing(57344.0f, 0.5f * kSmallestE5M2, kCount);
  std::vector<std::vector<std::uint8_t>> draws{first(one, base).codes};
  for (const AdamState8Options& other :
       {AdamState8Options{.stochastic_flush = true, .seed = 2, .step = 4},
        AdamState8Options{.stochastic_flush = true, .seed = 3, .step = 5},
        AdamState8Options{
            .stochastic_flush = true, .seed = 3, .step = 4, .first_element = 1u << 20},
        AdamState8Options{.stochastic_flush = true,
        .seed = 3,
        .step = 4,
        .first_element = std::uint64_t{1} << 33}}) {
    draws.push_back(first(one, other).codes);
  }
  draws.push_back(second(two, base).codes);
  for (std::vector<std::uint8_t>& codes : draws) codes.erase(codes.begin());  // the largest element
  for (std::size_t i = 0; i < draws.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(draws[i], draws[j]) << i << " " << j;
  }
}

TEST(AdamStateErrors, SizesMustMatch) {
  const std::array<float, 3> moment{1.0f, 2.0f, 3.0f};
  std::array<std::uint8_t, 2> codes{7, 7};
  EXPECT_EQ(encode_adam_first(moment, codes).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(encode_adam_second(moment, codes).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(codes, (std::array<std::uint8_t, 2>{7, 7}));
  std::array<float, 3> back{};
  EXPECT_EQ(decode_adam_first(codes, 1.0f, back).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(decode_adam_second(codes, 1.0f, back).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(back, (std::array<float, 3>{}));
}

TEST(AdamStateErrors, ScaleMustBeFiniteAndPositive) {
  const std::array<std::uint8_t, 1> code{0x38};
  std::array<float, 1> back{5.0f};
  for (const float scale : {0.0f, -0.0f, -1.0f, kInfinity, kNaN, -kNaN}) {
    EXPECT_EQ(decode_adam_first(code, scale, back).code(), StatusCode::kInvalidArgument) << scale;
    EXPECT_EQ(decode_adam_second(code, scale, back).code(), StatusCode::kInvalidArgument) << scale;
  }
  EXPECT_EQ(back[0], 5.0f);
}

TEST(AdamStateErrors, FirstMaxIsOneOfTwo) {
  const std::array<float, 1> moment{1.0f};
  std::array<std::uint8_t, 1> code{};
  for (const float max : {0.0f, -448.0f, 449.0f, kNaN}) {
    const auto result = encode_adam_first(moment, code, {.first_max = max});
    EXPECT_EQ(result.status().code(), StatusCode::kInvalidArgument) << max;
  }
}

#if defined(__x86_64__)
TEST(AdamStateFloatMode, FlushingDenormalsChangesNothing) {
  std::vector<float> tiny = normal(300, 1e-39f);  // subnormal
  tiny[0] = 1e-37f;
  const auto run = [&] {
    const Encoded one = first(tiny, {.stochastic_flush = true});
    const Encoded two = second(tiny, {.power_of_two_scale = true});
    return std::tuple(one.codes, one.scale, two.codes, two.scale);
  };
  const auto plain = run();
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);
  const auto flushed = run();
  const std::vector<float> back_flushed = decoded_first(first(tiny));
  _mm_setcsr(saved);
  EXPECT_EQ(plain, flushed);
  const std::vector<float> back = decoded_first(first(tiny));
  for (std::size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(back_flushed[i]));
  }
}
#endif

}  // namespace
}  // namespace leeway
