// Payload bytes and sums must not depend on the floating-point mode of the calling program.
// Frameworks set flush-to-zero (or link objects that do), and some code rounds towards zero. After
// a call, the caller's mode must be as it was before.
#include "codec/float_mode.h"

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"
#include "unit/codec/round_trip.h"

namespace leeway::codec {
namespace {

constexpr std::uint32_t kFlush = 0x8040;  // FTZ and DAZ
constexpr std::uint32_t kTowardsZero = 0x6000;
constexpr std::uint32_t kUpwards = 0x4000;
constexpr std::uint32_t kModes[] = {kFlush, kTowardsZero, kUpwards, kFlush | kTowardsZero};
constexpr std::uint32_t kStandard = 0x1F80;
constexpr std::uint32_t kStickyFlags = 0x3F;

// One whole rotation block of 256 elements and a rest, so that last blocks are short.
constexpr std::size_t kCount = 300;

// Runs `call` with the bits `mode` set in MXCSR, the register of the floating-point mode. Returns
// the control bits found after the call.
template <typename Call>
std::uint32_t control_after(std::uint32_t mode, Call call) {
  _mm_setcsr(kStandard | mode);
  call();
  const std::uint32_t after = _mm_getcsr() & ~kStickyFlags;
  _mm_setcsr(kStandard);
  return after;
}

std::vector<Format> all_formats() {
  std::vector<Format> formats = all_scaled_formats();
  for (CodecOptions options :
       {Codec::fp32, Codec::fp16, Codec::bf16, Codec::sparse, Codec::luq, Codec::int8}) {
    options.draws = options.codec == Codec::luq ? 3 : 1;
    options.clip = options.codec == Codec::int8;
    for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
      options.rounding = rounding;
      formats.push_back(format_of(options, DataType::f32));
    }
  }
  const std::size_t straight = formats.size();
  for (std::size_t i = 0; i < straight; ++i) {
    formats.push_back(formats[i]);
    formats.back().options.rotate = true;
  }
  return formats;
}

// Returns values over 12 binades up to `exponent`. With -126 and -140, many elements or scales are
// subnormal.
std::vector<float> values_around(int exponent) {
  std::vector<float> values(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const std::uint64_t draw = keyed_hash(31, i, static_cast<std::uint32_t>(exponent), 0, 0);
    const double unit = to_unit(draw) + 0.5;
    const int binade = exponent - static_cast<int>(draw % 12);
    values[i] = static_cast<float>(std::ldexp(draw >> 5 & 1 ? unit : -unit, binade));
  }
  return values;
}
constexpr int kExponents[] = {-140, -126, -110, -20, 0, 100};

struct Outcome {
  std::vector<std::byte> bytes;
  std::vector<float> decoded, sum, first, restored;
};

// Compares bit for bit, so that equal NaNs are equal.
bool operator==(const Outcome& a, const Outcome& b) {
  const auto same_bits = [](std::span<const float> x, std::span<const float> y) {
    return std::ranges::equal(std::as_bytes(x), std::as_bytes(y));
  };
  return a.bytes == b.bytes && same_bits(a.decoded, b.decoded) && same_bits(a.sum, b.sum) &&
         same_bits(a.first, b.first) && same_bits(a.restored, b.restored);
}

Outcome everything(const Format& format, const std::vector<float>& values, std::uint32_t mode) {
  const Place place{.seed = 3, .step = 4, .source = 5};
  Outcome outcome{std::vector<std::byte>(format.encoded_bytes(kCount)), std::vector<float>(kCount),
                  values, std::vector<float>(kCount), values};
  const std::uint32_t after = control_after(mode, [&] {
    encode(format, values, place, outcome.bytes);
    decode(format, outcome.bytes, place, outcome.decoded);
    accumulate(format, outcome.bytes, 0.3f, outcome.sum);
    accumulate_first(format, outcome.bytes, 0.7f, outcome.first);
    restore(format, place, outcome.restored);
  });
  EXPECT_EQ(after, kStandard | mode) << "the caller's mode was lost";
  return outcome;
}

TEST(StandardFloatMode, MakesEveryResultTheSameInEveryModeOfTheCaller) {
  for (const Format& format : all_formats()) {
    for (const int exponent : kExponents) {
      const std::vector<float> values = values_around(exponent);
      const Outcome expected = everything(format, values, 0);
      for (const std::uint32_t mode : kModes) {
        const Outcome outcome = everything(format, values, mode);
        ASSERT_TRUE(outcome == expected) << to_string(format.options) << ", values around 2^"
                                         << exponent << ", mode " << std::hex << mode;
      }
    }
  }
}

// Each entry point is checked alone, because a second call might restore a mode that the first one
// lost.
TEST(StandardFloatMode, LeavesTheModeOfTheCallerInEachCall) {
  const std::vector<float> values = values_around(0);
  const Place place{};
  for (const Format& format : all_formats()) {
    std::vector<std::byte> bytes(format.encoded_bytes(kCount));
    std::vector<float> sum(kCount);
    for (const std::uint32_t mode : kModes) {
      const std::uint32_t expected = kStandard | mode;
      EXPECT_EQ(control_after(mode, [&] { encode(format, values, place, bytes); }), expected);
      EXPECT_EQ(control_after(mode, [&] { decode(format, bytes, place, sum); }), expected);
      EXPECT_EQ(control_after(mode, [&] { accumulate(format, bytes, 1.5f, sum); }), expected);
      EXPECT_EQ(control_after(mode, [&] { accumulate_first(format, bytes, 1.5f, sum); }), expected);
      EXPECT_EQ(control_after(mode, [&] { restore(format, place, sum); }), expected);
    }
  }
}

TEST(StandardFloatMode, IsSetInsideAndRestoredOutside) {
  const std::uint32_t after = control_after(kFlush | kUpwards, [] {
    const StandardFloatMode mode;
    EXPECT_EQ(_mm_getcsr() & ~kStickyFlags, kStandard);
  });
  EXPECT_EQ(after, kStandard | kFlush | kUpwards);
}

}  // namespace
}  // namespace leeway::codec
#endif
