// Encoding must handle all floats. Floats encode to the same bytes on every instruction set and
// every time. Finite floats decode to finite values within the format's error bound. A block with
// an infinity or NaN decodes to NaN.
//
// Input: instruction set, format, place, shape, then the floats.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/contracts.h"
#include "codec/codec.h"
#include "codec/rotation.h"
#include "codec/scaled.h"
#include "codec/scaled_layout.h"
#include "codec_input.h"
#include "error_bound.h"

using namespace leeway;
using leeway::fuzz::same;

namespace {

// Reads floats. Random bytes give exponents of all sizes. The largest float then decides its
// block's scale, and most others become 0. So the input may limit exponents to a few powers of two:
// exponent = base + (own exponent & mask).
std::vector<float> read_floats(fuzz::Input& input) {
  constexpr std::uint32_t kMasks[] = {0xFF, 0x1F, 0x07, 0x01};
  const std::uint32_t mask = kMasks[input.byte() % 4];
  const std::uint32_t base = mask == 0xFF ? 0 : input.byte();
  const auto bytes = input.rest();
  std::vector<float> values(std::min(bytes.size() / sizeof(float), codec::kPacketElementsMax));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  for (float& value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t exponent = std::min(base + (bits >> 23 & mask), 0xFFu);
    value = std::bit_cast<float>((bits & 0x807FFFFF) | exponent << 23);
  }
  return values;
}

std::vector<std::byte> encoded(const codec::Format& format, const codec::Place& place,
                               std::span<const float> values) {
  // The buffer is filled with a pattern, because the encoder must overwrite every byte of it.
  std::vector<std::byte> payload(format.encoded_bytes(values.size()), std::byte{0xA5});
  codec::encode(format, values, place, payload);
  return payload;
}

std::vector<float> decoded(const codec::Format& format, const codec::Place& place,
                           std::span<const std::byte> payload, std::size_t elements) {
  std::vector<float> values(elements);
  codec::decode(format, payload, place, values);
  return values;
}

float largest_finite(std::span<const float> values) {
  float most = 0.0f;
  for (const float x : values) most = std::max(most, std::isfinite(x) ? std::abs(x) : 0.0f);
  return most;
}

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

// Expects decoded values within the error bound. A block with an infinity or NaN must become NaN as
// a whole, and must not affect other blocks.
void expect_near(const codec::Format& format, std::span<const float> in,
                 std::span<const float> out) {
  const bool bounded = !format.options.clip && format.options.bound == 0.0f;
  const double packet_max = largest_finite(in);
  const std::size_t group = fuzz::scale_group(format, in.size());
  for (std::size_t begin = 0; begin < in.size(); begin += group) {
    const std::size_t size = std::min(group, in.size() - begin);
    const auto block = in.subspan(begin, size);
    const bool finite = all_finite(block);
    const double block_max = largest_finite(block);
    for (std::size_t i = 0; i < size; ++i) {
      const float value = out[begin + i];
      LEEWAY_ASSERT(finite ? std::isfinite(value) : std::isnan(value));
      if (!finite || !bounded) continue;
      const double error = std::abs(static_cast<double>(value) - block[i]);
      LEEWAY_ASSERT(error <= fuzz::error_bound(format, block[i], block_max, packet_max));
    }
  }
}

void expect_each_near(const codec::Format& format, std::span<const float> in,
                      std::span<const float> out) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!std::isfinite(in[i])) {
      LEEWAY_ASSERT(same(in[i], out[i]));
      continue;
    }
    LEEWAY_ASSERT(std::isfinite(out[i]));
    const double error = std::abs(static_cast<double>(out[i]) - in[i]);
    LEEWAY_ASSERT(error <= fuzz::error_bound(format, in[i], 0.0, 0.0));
  }
}

double sum_of_magnitudes(std::span<const float> values) {
  double sum = 0.0;
  for (const float x : values) sum += std::abs(x);
  return sum;
}

// Expects at most `kept` nonzero elements in each group, with the right signs. No element may
// exceed the sum of the group's magnitudes by more than a step of E4M3. A step is an eighth of the
// value, or for small values 2^-9 of a scale that depends on the packet's largest value.
void expect_sampled(const codec::Format& format, std::span<const float> in,
                    std::span<const float> out) {
  if (!all_finite(in)) return;
  const double step = 0x1p-16 * sum_of_magnitudes(in) + 0x1p-130;
  const std::size_t group = format.options.group;
  for (std::size_t begin = 0; begin < in.size(); begin += group) {
    const std::size_t end = std::min(begin + group, in.size());
    const double most = 1.13 * sum_of_magnitudes(in.subspan(begin, end - begin)) + step;
    std::size_t sent = 0;
    for (std::size_t i = begin; i < end; ++i) {
      sent += out[i] != 0.0f;
      LEEWAY_ASSERT(std::abs(out[i]) <= most);
      LEEWAY_ASSERT(out[i] == 0.0f || std::signbit(out[i]) == std::signbit(in[i]));
    }
    LEEWAY_ASSERT(sent <= format.options.kept);
  }
}

void expect_kept_promises(const codec::Format& format, std::span<const float> in,
                          std::span<const float> out) {
  const Codec codec = format.options.codec;
  if (codec == Codec::fp32) {
    LEEWAY_ASSERT(same(in, out));
    return;
  }
  if (!fuzz::far_from_overflow(format, in)) return;
  if (codec::is_scaled(codec)) return expect_near(format, in, out);
  if (codec == Codec::sparse) return expect_sampled(format, in, out);
  expect_each_near(format, in, out);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const codec::InstructionSet& set = fuzz::read_instruction_set(input);
  codec::Format format = fuzz::read_format(input);
  codec::Place place = fuzz::read_place(input);
  std::vector<float> values = read_floats(input);

  const auto payload = encoded(format, place, values);
  const auto result = decoded(format, place, payload, values.size());
  place.ahead = values.data();
  {
    const codec::RunOn run_on(set);
    LEEWAY_ASSERT(encoded(format, place, values) == payload);
    LEEWAY_ASSERT(same(decoded(format, place, payload, values.size()), result));
  }
  // Rotated formats must equal the plain format between two rotations.
  if (format.options.rotate) {
    codec::rotate(place, values);
    format.options.rotate = false;
    LEEWAY_ASSERT(encoded(format, place, values) == payload);
  }
  if (codec::is_scaled(format.options.codec)) {
    std::vector<std::byte> defined(payload.size(), std::byte{0xA5});
    codec::scalar::encode_scaled(format, values, place, defined.data());
    LEEWAY_ASSERT(defined == payload);
  }
  expect_kept_promises(format, values, decoded(format, place, payload, values.size()));
  return 0;
}
