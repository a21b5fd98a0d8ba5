// Compares the rotation with its matrix, and the kernels of every instruction set with the
// definition.
#include "codec/rotation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/philox.h"
#include "codec/float_mode.h"
#include "unit/codec/supported_targets.h"

namespace leeway::codec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Place kPlace{
    .seed = 0xABCDEF0123, .step = 8, .source = 2, .first_element = (1ull << 41) + 96};

double uniform(std::uint32_t i, std::uint32_t stream) {
  return to_unit(keyed_hash(31, i, stream, 0, 0));
}

std::vector<float> ordinary_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::uint32_t i = 0; i < count; ++i) values[i] = static_cast<float>(2 * uniform(i, 0) - 1);
  return values;
}

// Integers, whose sums are exact.
std::vector<float> small_integers(std::size_t count) {
  std::vector<float> values(count);
  for (std::uint32_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(std::floor(200 * uniform(i, 1)) - 100);
  return values;
}

std::vector<float> rotated(std::vector<float> values, const Place& place = kPlace) {
  rotate(place, values);
  return values;
}
std::vector<float> unrotated(std::vector<float> values, const Place& place = kPlace) {
  unrotate(place, values);
  return values;
}

// Returns the documented sign of a tensor's element: bit e % 128 of the draw of group e / 128.
double sign_of(std::uint64_t element) {
  const std::uint64_t group = element / 128;
  const auto words = philox({static_cast<std::uint32_t>(group),
                             0x90000000 | static_cast<std::uint32_t>(group >> 32), kPlace.step, 0},
                            philox_key(kPlace.seed));
  return (words[element % 128 / 32] >> element % 32 & 1) != 0 ? -1 : 1;
}

// Returns row j of the orthonormal Walsh-Hadamard matrix times the signed block.
double matrix_row(std::span<const float> block, std::uint64_t element, std::size_t j) {
  double sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    sum += (std::popcount(i & j) % 2 == 0 ? 1 : -1) * sign_of(element + i) * block[i];
  }
  return sum / std::sqrt(static_cast<double>(block.size()));
}

void expect_is_the_matrix(std::size_t count) {
  const auto values = ordinary_values(count);
  const auto result = rotated(values);
  std::size_t first = 0;
  while (first < count) {
    const std::size_t length = std::min<std::size_t>(256, std::bit_floor(count - first));
    for (std::size_t j = 0; j < length; ++j) {
      const double expected =
          matrix_row(std::span(values).subspan(first, length), kPlace.first_element + first, j);
      ASSERT_NEAR(result[first + j], expected, 4e-6) << first << '+' << j << " of " << count;
    }
    first += length;
  }
}

TEST(Rotate, IsTheSignedHadamardMatrixOfEveryBlock) {
  for (const std::size_t count : {0, 1, 2, 3, 8, 31, 64, 100, 255, 256, 511, 512 + 97, 5 * 256}) {
    expect_is_the_matrix(count);
  }
}

TEST(Unrotate, UndoesARotationExactlyWhereSumsAreExact) {
  const auto values = small_integers(4 * 256 + 64 + 16 + 4);
  EXPECT_EQ(unrotated(rotated(values)), values);
  EXPECT_NE(rotated(values), values);
}

TEST(Unrotate, UndoesARotationButForRounding) {
  const auto values = ordinary_values(999);
  const auto result = unrotated(rotated(values));
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(result[i], values[i], 1e-6) << i;
}

TEST(Rotate, DependsOnSeedStepAndPositionButNotOnTheSource) {
  const auto values = ordinary_values(512);
  const auto result = rotated(values);
  Place other = kPlace;
  other.source = 99;
  EXPECT_EQ(rotated(values, other), result);
  for (const Place& changed : {Place{kPlace.seed + 1, 8, 2, kPlace.first_element},
                               Place{kPlace.seed ^ 1ull << 35, 8, 2, kPlace.first_element},
                               Place{kPlace.seed, 9, 2, kPlace.first_element},
                               Place{kPlace.seed, 8, 2, kPlace.first_element + 32},
                               Place{kPlace.seed, 8, 2, kPlace.first_element - (1ull << 41)}}) {
    EXPECT_NE(rotated(values, changed), result);
  }
}

TEST(Rotate, IsTheSameInOnePieceAndInBlocks) {
  const auto values = ordinary_values(6 * 256 + 40);
  auto parts = values;
  for (std::size_t first = 0; first < parts.size(); first += 256) {
    Place place = kPlace;
    place.first_element += first;
    rotate(place,
           std::span(parts).subspan(first, std::min<std::size_t>(256, parts.size() - first)));
  }
  EXPECT_EQ(parts, rotated(values));
}

// A sum of contributions can be rotated back at once: the rotation is linear and shared by all
// sources.
TEST(Rotate, OfASumIsTheSumOfRotations) {
  const auto a = small_integers(256);
  auto b = a;
  std::ranges::reverse(b);
  auto sum = rotated(a);
  const auto second = rotated(b);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += second[i];
  const auto result = unrotated(sum);
  for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_EQ(result[i], a[i] + b[i]) << i;
}

TEST(Rotate, SpreadsWhatIsNotFiniteOverItsBlockAlone) {
  for (const float poison : {kNan, kInfinity, -kInfinity}) {
    auto values = small_integers(768);
    const auto clean = rotated(values);
    values[300] = poison;
    const auto result = rotated(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i / 256 == 1) {
        ASSERT_FALSE(std::isfinite(result[i])) << i;
      } else {
        ASSERT_EQ(result[i], clean[i]) << i;
      }
    }
  }
}

TEST(Rotate, DoesNotOverflowOnTheWayToAFiniteResult) {
  constexpr float kMost = std::numeric_limits<float>::max();
  std::vector<float> values(256, kMost / 16);
  EXPECT_TRUE(std::ranges::all_of(rotated(values), [](float x) { return std::isfinite(x); }));
  std::vector<float> single(256, 0.0f);
  single[77] = kMost;
  const auto spread = rotated(single);
  EXPECT_TRUE(std::ranges::all_of(spread, [](float x) { return std::fabs(x) == kMost / 16; }));
  EXPECT_EQ(unrotated(spread), single);
}

// Ordinary values, values of all magnitudes, and zeros of both signs.
std::vector<float> difficult_values(std::size_t count) {
  std::vector<float> values(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::uint32_t>(keyed_hash(33, i, 0, 0, 0));
    const auto any = std::bit_cast<float>(bits);
    values[i] =
        i % 3 == 0 && std::fabs(any) < 1e36f ? any : static_cast<float>(uniform(i, 2) - 0.5);
    if (i % 16 == 5) values[i] = bits % 2 == 0 ? 0.0f : -0.0f;
    if (i / 256 == 2)
      values[i] =
          std::ldexp(values[i] / (1 + std::fabs(values[i])), -130);  // makes a block of subnormals
  }
  return values;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

TEST(Rotate, AgreesInEveryBitWithTheDefinitionOnEveryTarget) {
  const auto values = difficult_values(9 * 256 + 200);
  for (const std::uint64_t start : {0, 32, 96, 128, 1056}) {
    const Place place{.seed = 3, .step = 1, .source = 1, .first_element = start};
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{1024}, values.size()}) {
      const StandardFloatMode mode;
      std::vector<float> forward(values.begin(),
                                 values.begin() + static_cast<std::ptrdiff_t>(count));
      auto backward = forward;
      scalar::rotate(place, forward);
      scalar::unrotate(place, backward);
      for_each_supported_target([&] {
        // Data begin one float after the start, so that vectors are not aligned.
        std::vector<float> buffer(count + 1);
        const auto part = std::span(buffer).subspan(1);
        std::copy_n(values.begin(), count, part.begin());
        rotate(place, part);
        EXPECT_TRUE(same_bits(part, forward)) << count << " from " << start;
        std::copy_n(values.begin(), count, part.begin());
        unrotate(place, part);
        EXPECT_TRUE(same_bits(part, backward)) << count << " from " << start;
      });
    }
  }
}

}  // namespace
}  // namespace leeway::codec
