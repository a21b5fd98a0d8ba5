// Tests stochastic fp16 and bf16. The scalar code is checked with all 2^16 random words, and then
// the functions on spans are compared with it.
#include "codec/stochastic_floats.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "codec/float_mode.h"
#include "unit/codec/supported_targets.h"

namespace leeway::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kWords = 1 << 16;

struct Fp16 {
  static constexpr Codec kCodec = Codec::fp16;
  static constexpr std::uint16_t kInfinityCode = 0x7C00;
  static std::uint16_t encode(float x, std::uint16_t random) {
    return half_from_float(x, random).bits;
  }
  static std::uint16_t nearest(float x) { return half_from_float(x).bits; }
  static float decode(std::uint16_t code) { return float_from_half({code}); }
};
struct Bf16 {
  static constexpr Codec kCodec = Codec::bf16;
  static constexpr std::uint16_t kInfinityCode = 0x7F80;
  static std::uint16_t encode(float x, std::uint16_t random) {
    return bfloat16_from_float(x, random).bits;
  }
  static std::uint16_t nearest(float x) { return bfloat16_from_float(x).bits; }
  static float decode(std::uint16_t code) { return float_from_bfloat16({code}); }
};

template <typename Element>
class StochasticFloat : public ::testing::Test {};
using Elements = ::testing::Types<Fp16, Bf16>;
TYPED_TEST_SUITE(StochasticFloat, Elements);

std::uint32_t random_bits(std::uint32_t i, std::uint32_t stream) {
  return static_cast<std::uint32_t>(keyed_hash(21, i, stream, 0, 0));
}

// Returns values between neighbours of the format, across the finite range, subnormals included.
template <typename Element>
std::vector<float> values_between_neighbours() {
  std::vector<float> values;
  for (std::uint32_t i = 0; i < 64; ++i) {
    const auto code = static_cast<std::uint16_t>(random_bits(i, 0) % (Element::kInfinityCode - 1u));
    const double low = Element::decode(code);
    const double high = Element::decode(static_cast<std::uint16_t>(code + 1));
    const auto between =
        static_cast<float>(low + (high - low) * to_unit(std::uint64_t{random_bits(i, 1)} << 32));
    values.push_back(i % 2 == 0 ? between : -between);
  }
  for (const float first : {0.3f, 0.01f}) values.push_back(first * Element::decode(1));
  return values;
}

TYPED_TEST(StochasticFloat, HasTheExpectationToA131072thOfTheQuantum) {
  for (const float x : values_between_neighbours<TypeParam>()) {
    double sum = 0;
    for (int word = 0; word < kWords; ++word) {
      sum += TypeParam::decode(TypeParam::encode(x, static_cast<std::uint16_t>(word)));
    }
    const std::uint16_t low = TypeParam::encode(std::fabs(x), 0);
    const double quantum =
        static_cast<double>(TypeParam::decode(static_cast<std::uint16_t>(low + 1))) -
        TypeParam::decode(low);
    ASSERT_LE(std::fabs(sum / kWords - x), quantum / (2 * kWords)) << x;
  }
}

TYPED_TEST(StochasticFloat, NeverMovesAValueOfTheFormat) {
  for (std::uint32_t code = 0; code < TypeParam::kInfinityCode; ++code) {
    for (const std::uint32_t sign : {0u, 0x8000u}) {
      const auto signed_code = static_cast<std::uint16_t>(code | sign);
      const float x = TypeParam::decode(signed_code);
      for (const std::uint16_t word : {0, 1, 0x8000, 0xFFFF})
        ASSERT_EQ(TypeParam::encode(x, word), signed_code);
    }
  }
}

TYPED_TEST(StochasticFloat, RoundsBeyondTheLargestFiniteValueToNearest) {
  const float most = TypeParam::decode(TypeParam::kInfinityCode - 1);
  const float step = most - TypeParam::decode(TypeParam::kInfinityCode - 2);
  const float middle = most + step / 2;
  for (const float x :
       {std::nextafter(most, kInfinity), std::nextafter(middle, 0.0f), middle, kInfinity,
        -kInfinity, std::numeric_limits<float>::quiet_NaN(), std::bit_cast<float>(0xFF800001u)}) {
    for (const std::uint16_t word : {0, 0xFFFF})
      ASSERT_EQ(TypeParam::encode(x, word), TypeParam::nearest(x)) << x;
  }
  ASSERT_EQ(TypeParam::encode(std::nextafter(-middle, 0.0f), 0xFFFF),
            0x8000 | (TypeParam::kInfinityCode - 1));
}

TYPED_TEST(StochasticFloat, RoundsWhatLiesFarBelowTheSmallestSubnormalToZeroWithItsSign) {
  for (const std::uint16_t word : {0, 0xFFFF}) {
    EXPECT_EQ(TypeParam::encode(-0.0f, word), 0x8000);
  }
  // A fraction of 2^-17 of the quantum is below the random word's resolution, so it never rounds
  // up.
  const float below = TypeParam::decode(1) * 0x1p-17f;
  EXPECT_EQ(TypeParam::encode(-below, 0xFFFF), 0x8000);
  EXPECT_EQ(TypeParam::encode(below, 0xFFFF), 0);
}

constexpr Place kPlace{
    .seed = 0x1234567890, .step = 9, .source = 4, .first_element = (1ull << 36) + 48};

std::uint16_t documented_word(std::uint64_t element) {
  const std::uint64_t block = element / 16;
  const std::uint32_t draw = element % 16 / 8;
  const auto words =
      philox({static_cast<std::uint32_t>(block),
              draw << 24 | static_cast<std::uint32_t>(block >> 32), kPlace.step, kPlace.source},
             philox_key(kPlace.seed));
  return static_cast<std::uint16_t>(words[element % 8 / 2] >> 16 * (element % 2));
}

// Bits where one rule gives way to another: the largest finite values, what lies half a step above
// them and its neighbours, infinity, NaN, the smallest normal and subnormal values.
constexpr std::array<std::uint32_t, 24> kBorders = {
    0x477FE000, 0x477FE001, 0x477FEFFF, 0x477FF000, 0x47800000, 0x7F7F0000, 0x7F7F0001, 0x7F7F7FFF,
    0x7F7F8000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0x38800000, 0x387FFFFF,
    0x33800000, 0x33000000, 0x2B000000, 0x2AFFFFFF, 0x2B000001, 0x00800000, 0x007FFFFF, 0x00000001};

// Every second value has any bits or those of a border. The others have ordinary size, or are
// subnormal in the format.
std::vector<float> any_floats(std::size_t count) {
  std::vector<float> values(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const double ordinary = to_unit(std::uint64_t{random_bits(i, 3)} << 32) - 0.5;
    values[i] = std::bit_cast<float>(random_bits(i, 2));
    if (i % 8 == 2)
      values[i] = std::bit_cast<float>(kBorders[i / 8 % kBorders.size()] | (i / 8 % 7 << 31));
    if (i % 4 == 1) values[i] = static_cast<float>(ordinary);
    if (i % 4 == 3) values[i] = static_cast<float>(ordinary * 0x1p-13);
  }
  return values;
}

template <typename Element>
std::vector<std::uint16_t> defined_codes(std::span<const float> values) {
  std::vector<std::uint16_t> codes;
  for (const float x : values)
    codes.push_back(Element::encode(x, documented_word(kPlace.first_element + codes.size())));
  return codes;
}

TYPED_TEST(StochasticFloat, SpansUseTheDocumentedWordsAtEveryLengthOnEveryTarget) {
  const auto values = any_floats(4096);
  const auto expected = defined_codes<TypeParam>(values);
  for_each_supported_target([&] {
    const StandardFloatMode mode;
    for (std::size_t count = 0; count <= values.size(); count += count < 130 ? 1 : 661) {
      std::vector<std::byte> bytes(2 * count + 2, std::byte{0x5A});
      encode_floats_stochastic(TypeParam::kCodec, std::span(values).first(count), kPlace,
                               bytes.data() + 1);
      ASSERT_EQ(std::memcmp(bytes.data() + 1, expected.data(), 2 * count), 0) << count;
      ASSERT_EQ(bytes.back(), std::byte{0x5A});
    }
  });
}

TYPED_TEST(StochasticFloat, SpansAreTheSameInOnePieceAndInSeveral) {
  const auto values = any_floats(256);
  std::vector<std::byte> whole(512);
  std::vector<std::byte> parts(512);
  encode_floats_stochastic(TypeParam::kCodec, values, kPlace, whole.data());
  for (std::size_t first = 0; first < values.size(); first += 64) {
    Place place = kPlace;
    place.first_element += first;
    encode_floats_stochastic(TypeParam::kCodec, std::span(values).subspan(first, 64), place,
                             parts.data() + 2 * first);
  }
  EXPECT_EQ(parts, whole);
}

}  // namespace
}  // namespace leeway::codec
