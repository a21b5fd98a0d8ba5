// A packet of n elements: [float32 scale][blocks]. A block of max(group, 32) elements: its bitmap (bit i % 8
// of byte i / 8: element i is kept), then the E4M3 codes of kept elements in their order, zeros up to the
// most there can be. README.md, "Sparse".
//
// Encoding goes twice over the packet. The first pass draws what is kept and finds the largest value to be
// sent, from which the scale follows; the second writes the codes. That the scale depends on the draw does
// not bias the result: given any scale that does not clip, stochastic rounding keeps the expectation.
#include "codec/sparse.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/contracts.h"
#include "codec/minifloat.h"
#include "codec/random_bytes.h"
#include "codec/sampling.h"

namespace leeway::codec {
namespace {

constexpr std::size_t kWordElements = 32;  // of one word of the bitmap
constexpr std::size_t kScaleBytes = sizeof(float);

// What the first pass decided.
struct Selection {
  std::array<std::uint32_t, kPacketElementsMax / kWordElements> bitmap;
  std::array<std::uint32_t, kPacketElementsMax> units;  // probabilities of the kept elements, in order
  std::size_t count = 0;
  double largest = 0;  // magnitude to be sent
};

// x / p. Exceeds the range of float where a group's sum does.
double value_to_send(float x, std::uint32_t units) {
  return static_cast<double>(x) * kCertain / units;
}

// Groups that share one draw of 128 random bits, a word each. Every group thus has a word of its own, found
// from its place in the tensor: with e its first element, word e % 16 / group % 4 of draw
// e % 16 / group / 4 of the 16-element block e / 16.
template <std::size_t kGroup>
inline constexpr std::size_t kGroupsPerDraw = std::clamp<std::size_t>(16 / kGroup, 1, 4);

PhiloxCounter sampling_words(const Place& place, std::uint64_t element, std::size_t draw_elements) {
  const auto draw = static_cast<std::uint32_t>(element % kRandomBlockElements / draw_elements);
  return philox<10>(
      random_counter(place, kSamplingStream, element / kRandomBlockElements, draw),
      philox_key(place.seed));
}

template <std::size_t kGroup>
void select_group(const std::array<float, kGroup>& group, std::uint32_t kept, std::uint32_t offset,
                  std::size_t first, Selection& selection) {
  const auto units = inclusion_units(group, kept);
  std::uint32_t running = offset;
  for (std::size_t i = 0; i < kGroup; ++i) {
    const bool keep = passes_integer(running, units[i]);
    selection.bitmap[(first + i) / kWordElements] |= std::uint32_t{keep} << (first + i) % kWordElements;
    if (!keep) continue;
    selection.units[selection.count++] = units[i];
    selection.largest = std::max(selection.largest, std::fabs(value_to_send(group[i], units[i])));
  }
}

template <std::size_t kGroup>
void select(std::span<const float> in, std::uint32_t kept, const Place& place, Selection& selection) {
  constexpr std::size_t kDrawElements = kGroupsPerDraw<kGroup> * kGroup;
  PhiloxCounter words{};
  for (std::size_t first = 0; first < in.size(); first += kGroup) {
    if (first % kDrawElements == 0) words = sampling_words(place, place.first_element + first, kDrawElements);
    std::array<float, kGroup> group{};
    std::copy_n(in.begin() + static_cast<std::ptrdiff_t>(first), std::min(kGroup, in.size() - first),
                group.begin());
    const std::uint32_t offset = words[first % kDrawElements / kGroup] >> (32 - kSamplingBits);
    select_group(group, kept, offset, first, selection);
  }
}

void select(const Format& format, std::span<const float> in, const Place& place, Selection& selection) {
  const std::uint32_t kept = format.options.kept;
  switch (format.options.group) {
    case 2:
      return select<2>(in, kept, place, selection);
    case 4:
      return select<4>(in, kept, place, selection);
    case 8:
      return select<8>(in, kept, place, selection);
    case 16:
      return select<16>(in, kept, place, selection);
    case 32:
      return select<32>(in, kept, place, selection);
    default:
      return select<256>(in, kept, place, selection);
  }
}

// The smallest float that does not clip, decided in the arithmetic that divides by it.
float scale_for(double largest_sent) {
  const double most = largest(kE4M3);
  const auto scale = static_cast<float>(largest_sent / most);
  if (scale * most >= largest_sent) return scale;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) + 1);
}

// Writes bitmap and codes of blocks, from what the selection holds.
class BlockWriter {
 public:
  BlockWriter(std::span<const float> in, const Place& place, const Selection& selection, float scale)
      : in_(in), place_(place), selection_(selection), inverse_(1.0 / scale) {}

  // The block whose elements start at `first`.
  void write(const Format& format, std::size_t first, std::byte* out) {
    const std::size_t words = format.block_elements / kWordElements;
    std::byte* code = out + words * sizeof(std::uint32_t);
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint32_t kept = selection_.bitmap[first / kWordElements + w];
      std::memcpy(out + w * sizeof(kept), &kept, sizeof(kept));
      for (std::size_t half = 0; half < 2; ++half) {
        code = write_codes(first + w * kWordElements + half * kRandomBlockElements,
                           kept >> half * kRandomBlockElements & 0xFFFF, code);
      }
    }
  }

 private:
  // Codes of the 16 elements from `first`, whose random bytes are one draw.
  std::byte* write_codes(std::size_t first, std::uint32_t kept, std::byte* out) {
    if (kept == 0) return out;
    const auto random = random_bytes(place_, kRoundingStream, (place_.first_element + first) / kRandomBlockElements);
    for (; kept != 0; kept &= kept - 1) {
      const auto j = static_cast<std::size_t>(std::countr_zero(kept));
      const double sent = value_to_send(in_[first + j], selection_.units[next_++]);
      *out++ = static_cast<std::byte>(encode_stochastic(kE4M3, static_cast<float>(sent * inverse_), random[j]));
    }
    return out;
  }

  std::span<const float> in_;
  const Place& place_;
  const Selection& selection_;
  double inverse_;
  std::size_t next_ = 0;
};

bool all_finite(std::span<const float> in) {
  std::uint32_t most = 0;
  for (const float x : in) most = std::max(most, std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF);
  return most < 0x7F800000;
}

void store_scale(float scale, std::byte* out) { std::memcpy(out, &scale, sizeof(scale)); }

constexpr std::array<float, 256> kDecoded = [] {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) values[static_cast<std::size_t>(code)] = decode(kE4M3, code);
  return values;
}();

// sum += factor * value for the kept elements of a block of sum.size() elements, or fewer at the end of a
// packet. Bits beyond the codes that there are, or beyond the end, mean nothing.
void accumulate_block(const Format& format, const std::byte* in, float factor, std::span<float> sum) {
  const std::byte* code = in + format.block_elements / 8;
  const std::byte* const codes_end = in + format.block_bytes;
  for (std::size_t first = 0; first < sum.size(); first += kWordElements) {
    std::uint32_t kept = 0;
    std::memcpy(&kept, in + first / 8, sizeof(kept));
    const std::size_t left = sum.size() - first;
    if (left < kWordElements) kept &= (1u << left) - 1;
    for (; kept != 0 && code != codes_end; kept &= kept - 1) {
      float& element = sum[first + static_cast<std::size_t>(std::countr_zero(kept))];
      element = element + factor * kDecoded[static_cast<std::size_t>(*code++)];
    }
  }
}

}  // namespace

void encode_sparse(const Format& format, std::span<const float> in, const Place& place, std::byte* out) {
  LEEWAY_ASSERT(in.size() <= kPacketElementsMax);
  std::memset(out, 0, format.encoded_bytes(in.size()));
  if (!all_finite(in)) return store_scale(std::numeric_limits<float>::quiet_NaN(), out);
  Selection selection;
  std::fill_n(selection.bitmap.begin(), format.blocks(in.size()) * format.block_elements / kWordElements, 0u);
  select(format, in, place, selection);
  if (selection.count == 0) return;
  const float scale = scale_for(selection.largest);
  store_scale(scale, out);
  BlockWriter writer(in, place, selection, scale);
  for (std::size_t block = 0; block < format.blocks(in.size()); ++block) {
    writer.write(format, block * format.block_elements, out + kScaleBytes + block * format.block_bytes);
  }
}

void accumulate_sparse(const Format& format, const std::byte* in, float scale, std::span<float> sum) {
  float packet_scale = 0;
  std::memcpy(&packet_scale, in, sizeof(packet_scale));
  const float factor = scale * packet_scale;
  if (!std::isfinite(packet_scale)) {  // every element becomes NaN, also those that were not sent
    for (float& element : sum) element = element + factor * 0.0f;
  }
  for (std::size_t first = 0; first < sum.size(); first += format.block_elements) {
    const std::size_t count = std::min(format.block_elements, sum.size() - first);
    const std::byte* const block = in + kScaleBytes + first / format.block_elements * format.block_bytes;
    accumulate_block(format, block, factor, sum.subspan(first, count));
  }
}

void assign_sparse(const Format& format, const std::byte* in, float scale, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  accumulate_sparse(format, in, scale, out);
}

}  // namespace leeway::codec
