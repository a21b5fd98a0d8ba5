// The kernels of the block-scaled formats must give the bytes and sums of the scalar reference
// code: on every instruction set, for every format, rounding and scale rule, at every length and
// alignment.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "codec/scaled.h"
#include "codec/scaled_layout.h"
#include "unit/codec/mixed_values.h"
#include "unit/codec/supported_targets.h"

namespace leeway::codec {
namespace {

std::vector<CodecOptions> every_option() {
  std::vector<CodecOptions> all;
  for (int codec = 0; codec < kCodecCount; ++codec) {
    if (!is_scaled(static_cast<Codec>(codec))) continue;
    for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
      CodecOptions options(static_cast<Codec>(codec));
      options.rounding = rounding;
      all.push_back(options);
    }
  }
  const std::size_t plain = all.size();
  for (std::size_t i = 0; i < plain; ++i) {
    CodecOptions options = all[i];
    const std::string name(to_string(options.codec));
    if (name.starts_with("mx") && options.rounding == Rounding::nearest) {
      for (const ScaleRule rule : {ScaleRule::floor, ScaleRule::even, ScaleRule::ceil}) {
        options.scale_rule = rule;
        all.push_back(options);
      }
    }
  }
  return all;
}

// Returns every codec once, because rounding and scale rule do not matter for decoding.
std::vector<CodecOptions> every_codec() {
  std::vector<CodecOptions> all = every_option();
  std::erase_if(
      all, [](const CodecOptions& options) { return options.rounding != Rounding::stochastic; });
  return all;
}

// Options that only some formats have.
std::vector<CodecOptions> special_options() {
  std::vector<CodecOptions> all;
  for (std::uint8_t draws = 2; draws <= 4; ++draws) {
    CodecOptions options(Codec::luq);
    options.draws = draws;
    all.push_back(options);
  }
  for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
    CodecOptions clip(Codec::int8);
    clip.clip = true;
    clip.rounding = rounding;
    all.push_back(clip);
    for (const Codec codec : {Codec::fp8_e4m3, Codec::fp8_e5m2, Codec::nvfp4, Codec::nvfp4_te,
                              Codec::luq, Codec::int8}) {
      CodecOptions bound(codec);
      bound.rounding = rounding;
      bound.bound = 0.75f;
      all.push_back(bound);
    }
  }
  return all;
}

constexpr Place kPlace{.seed = 0x123456789ABCDEF0,
                       .step = 7,
                       .source = 3,
                       .first_element = (std::uint64_t{1} << 36) - 32};

std::vector<std::byte> defined_encoding(const Format& format, std::span<const float> in,
                                        const Place& place) {
  std::vector<std::byte> out(format.encoded_bytes(in.size()), std::byte{0xAA});
  scalar::encode_scaled(format, in, place, out.data());
  return out;
}

// Encodes with the kernel, to an odd address, over bytes that are not zero, with guard bytes on
// both sides.
std::vector<std::byte> kernel_encoding(const Format& format, std::span<const float> in,
                                       const Place& place) {
  std::vector<std::byte> out(format.encoded_bytes(in.size()) + 2, std::byte{0x55});
  encode_scaled(format, in, place, out.data() + 1);
  EXPECT_EQ(out.front(), std::byte{0x55});
  EXPECT_EQ(out.back(), std::byte{0x55});
  return {out.begin() + 1, out.end() - 1};
}

struct Case {
  Format format;
  std::vector<float> in;
  Place place;
  std::vector<std::byte> expected;
};

void expect_encodings(const std::vector<Case>& cases) {
  for_each_supported_target([&] {
    for (const Case& test : cases) {
      ASSERT_EQ(kernel_encoding(test.format, test.in, test.place), test.expected)
          << to_string(test.format.options) << ", " << test.in.size() << " elements";
    }
  });
}

void add_case(std::vector<Case>& cases, const CodecOptions& options, std::vector<float> in,
              const Place& place = kPlace) {
  const Format format = format_of(options, DataType::f32);
  auto expected = defined_encoding(format, in, place);
  cases.push_back({format, std::move(in), place, std::move(expected)});
}

TEST(EncodeScaled, EqualsItsDefinitionAtEveryLength) {
  std::vector<Case> cases;
  for (const auto& options : every_option()) {
    for (std::size_t count = 0; count <= 300; count += count < 70 ? 1 : 23) {
      add_case(cases, options, mixed(count, static_cast<std::uint32_t>(count)));
    }
  }
  expect_encodings(cases);
}

TEST(EncodeScaled, EqualsItsDefinitionOnWholePackets) {
  std::vector<Case> cases;
  for (const auto& options : every_option()) {
    for (const std::size_t count : {std::size_t{2048}, kPacketElementsMax - 1, kPacketElementsMax})
      add_case(cases, options, mixed(count, 5000));
  }
  expect_encodings(cases);
}

TEST(EncodeScaled, EqualsItsDefinitionOnPacketsOfOneKind) {
  std::vector<Case> cases;
  for (const auto& options : every_option()) {
    for (int kind = 0; kind < static_cast<int>(ValueKind::count); ++kind) {
      add_case(cases, options,
               all_of(static_cast<ValueKind>(kind), 330, static_cast<std::uint32_t>(kind)));
    }
  }
  expect_encodings(cases);
}

TEST(EncodeScaled, EqualsItsDefinitionAtEveryScale) {
  std::vector<Case> cases;
  for (const auto& options : every_option()) {
    std::vector<float> values;
    for (int exponent = -16; exponent <= 15; ++exponent) {
      for (std::size_t i = 0; i < 32; ++i)
        values.push_back(std::ldexp(value_of(ValueKind::ties, value_bits(i, 77)), exponent));
    }
    add_case(cases, options, values);
  }
  expect_encodings(cases);
}

TEST(EncodeScaled, EqualsItsDefinitionWithBoundsClipsAndDraws) {
  std::vector<Case> cases;
  for (const auto& options : special_options()) {
    for (const std::size_t count : {0, 1, 31, 257, 2048}) {
      add_case(cases, options, all_of(ValueKind::ordinary, count, 80));
      add_case(cases, options, all_of(ValueKind::ties, count, 81));
      add_case(cases, options, mixed(count, 82));
    }
  }
  expect_encodings(cases);
}

TEST(EncodeScaled, KeysRandomBytesByThePlaceInTheTensor) {
  std::vector<Case> cases;
  for (auto options : every_option()) {
    if (options.rounding != Rounding::stochastic) continue;
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{16}, std::uint64_t{4064},
                                      (std::uint64_t{1} << 40) + 48}) {
      Place place{.seed = value_bits(first, 90),
                  .step = static_cast<std::uint32_t>(first),
                  .source = 9,
                  .first_element = first};
      add_case(cases, options, all_of(ValueKind::ordinary, 600, 91), place);
    }
  }
  expect_encodings(cases);
}

TEST(EncodeScaled, IsNotChangedByFetchingTheNextPacket) {
  std::vector<Case> cases;
  const std::vector<float> values = mixed(2100, 95);
  Place place = kPlace;
  place.ahead = values.data();
  for (const auto& options : every_option()) add_case(cases, options, values, place);
  expect_encodings(cases);
}

// Returns payloads to decode: an encoder's, random bytes, and the worst possible ones.
std::vector<std::vector<std::byte>> payloads(const Format& format, std::size_t count) {
  std::vector<std::byte> honest =
      defined_encoding(format, all_of(ValueKind::ordinary, count, 30), kPlace);
  std::vector<std::byte> with_nan = defined_encoding(format, mixed(count, 31), kPlace);
  std::vector<std::byte> random(honest.size());
  for (std::size_t i = 0; i < random.size(); ++i)
    random[i] = static_cast<std::byte>(value_bits(i, 32));
  std::vector<std::byte> scales = honest;  // hostile scales with codes from an encoder
  std::copy_n(random.begin(), std::min<std::size_t>(random.size(), format.header_bytes + 9),
              scales.begin());
  return {honest,
          with_nan,
          random,
          scales,
          std::vector(honest.size(), std::byte{0xFF}),
          std::vector(honest.size(), std::byte{0})};
}

// Expects the kernel's sums to equal those of the scalar code. Both start from the same values. The
// kernel reads the payload at an odd address.
void expect_same_sums(const Format& format, const std::vector<std::byte>& payload,
                      std::size_t count, float scale) {
  std::vector<std::byte> shifted(payload.size() + 1);
  std::ranges::copy(payload, shifted.begin() + 1);
  const std::vector<float> start = all_of(ValueKind::ordinary, count, 40);
  std::vector<float> expected = start;
  std::vector<float> sum = start;
  scalar::accumulate_scaled(format, payload.data(), scale, expected);
  accumulate_scaled(format, shifted.data() + 1, scale, sum);
  ASSERT_TRUE(same_floats(sum, expected))
      << to_string(format.options) << ", " << count << " elements, scale " << scale;
  scalar::assign_scaled(format, payload.data(), scale, expected);
  assign_scaled(format, shifted.data() + 1, scale, sum);
  ASSERT_TRUE(same_floats(sum, expected))
      << to_string(format.options) << ", " << count << " elements, scale " << scale;
}

void expect_sums(const std::vector<CodecOptions>& all, const std::vector<std::size_t>& counts) {
  for_each_supported_target([&] {
    for (const auto& options : all) {
      const Format format = format_of(options, DataType::f32);
      for (const std::size_t count : counts) {
        for (const auto& payload : payloads(format, count)) {
          for (const float scale : {0.3f, 0x1p120f, 0x1p-130f})
            expect_same_sums(format, payload, count, scale);
        }
      }
    }
  });
}

TEST(SumScaled, EqualsItsDefinitionAtEveryLength) {
  expect_sums(every_codec(),
              {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 100, 127, 128, 129, 257, 300});
}
TEST(SumScaled, EqualsItsDefinitionOnWholePackets) {
  expect_sums(every_codec(), {kPacketElementsMax - 1});
}
TEST(SumScaled, EqualsItsDefinitionWithBoundsClipsAndDraws) {
  expect_sums(special_options(), {5, 512});
}

}  // namespace
}  // namespace leeway::codec
