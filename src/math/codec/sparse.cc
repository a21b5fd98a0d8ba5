// A packet of n elements: [float32 scale][blocks]. A block of max(group, 32) elements: its bitmap
// (bit i % 8 of byte i / 8: element i is kept), then the E4M3 codes of kept elements in their
// order, zeros up to the most there can be. README.md, "Sparse".
//
// The encoder draws the kept elements, takes the scale from the largest value to be sent, and
// rounds codes stochastically. The scale depends on the draw, but this does not bias the result:
// rounding keeps the expectation under any scale that does not clip.
#include "codec/sparse.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/contracts.h"
#include "codec/float8.h"
#include "codec/load_store.h"
#include "codec/minifloat.h"
#include "codec/packet_limit.h"
#include "codec/random_bytes.h"
#include "codec/sampling.h"
#include "codec/sparse_kernels.h"

namespace leeway::codec {
namespace {

constexpr std::size_t kWordElements = 32;  // elements of one word of the bitmap
constexpr std::size_t kScaleBytes = sizeof(float);

// The kept elements of a packet. `sent` and `random` have, for each of them in order, the value to
// be sent and the random byte of its rounding.
struct Selection {
  std::array<std::uint32_t, kPacketElementsMax / kWordElements> bitmap;
  std::array<float, kPacketElementsMax> sent;
  std::array<std::uint8_t, kPacketElementsMax> random;
  std::size_t count = 0;
};

// Random bits of kStretch elements: a byte each for rounding, and a 32-bit word for each group's
// sample. A group that starts at element e of the tensor uses word e % 16 / group % 4 of draw e %
// 16 / group / 4 of the 16-element block e / 16, which no other group uses.
constexpr std::size_t kStretch = 256;  // elements; a multiple of every group and block

struct Draws {
  alignas(64) std::array<std::uint8_t, kStretch> rounding;
  alignas(64) std::array<std::array<std::uint8_t, kStretch>, 2> sampling;

  std::uint32_t word(std::size_t draw, std::size_t index) const {
    std::uint32_t word = 0;
    std::memcpy(&word, &sampling[draw][4 * index], sizeof(word));
    return word;
  }
};

// Returns the offset at which a group's sample starts. The group begins at `at` of the stretch.
template <std::size_t kGroup>
std::uint32_t sampling_offset(const Draws& draws, std::size_t at) {
  const std::size_t index = at % kRandomBlockElements / kGroup;
  return draws.word(index / 4, at / kRandomBlockElements * 4 + index % 4) >> (32 - kSamplingBits);
}

// Appends the kept elements of the group that starts at `first` of the packet. `random` has a byte
// for each of its elements. The loop does not branch on whether an element is kept, which no
// processor could predict.
template <std::size_t kGroup>
void select_group(const std::array<float, kGroup>& group, std::uint32_t kept, std::uint32_t offset,
                  std::size_t first, const std::uint8_t* random, Selection& selection) {
  const auto units = inclusion_units(group, kept);
  std::array<float, kGroup> sent;  // x / p
  for (std::size_t i = 0; i < kGroup; ++i) {
    sent[i] =
        static_cast<float>(static_cast<double>(group[i]) * kCertain /
                           static_cast<double>(static_cast<std::int32_t>(std::max(units[i], 1u))));
  }
  std::uint32_t running = offset;
  for (std::size_t i = 0; i < kGroup; ++i) {
    const bool keep = passes_integer(running, units[i]);
    const std::size_t element = first + i;
    selection.bitmap[element / kWordElements] |= std::uint32_t{keep} << element % kWordElements;
    selection.sent[selection.count] = sent[i];
    selection.random[selection.count] = random[i];
    selection.count += keep;
  }
}

template <std::size_t kGroup>
void select_stretch(std::span<const float> in, std::uint32_t kept, std::size_t first,
                    const Draws& draws, Selection& selection) {
  for (std::size_t at = 0; at < in.size(); at += kGroup) {
    std::array<float, kGroup> group{};
    if (in.size() - at >= kGroup) {
      std::memcpy(group.data(), in.data() + at, sizeof(group));
    } else {
      std::copy(in.begin() + static_cast<std::ptrdiff_t>(at), in.end(), group.begin());
    }
    select_group(group, kept, sampling_offset<kGroup>(draws, at), first + at, &draws.rounding[at],
                 selection);
  }
}

template <std::size_t kGroup>
void select(std::span<const float> in, std::uint32_t kept, const Place& place,
            Selection& selection) {
  for (std::size_t first = 0; first < in.size(); first += kStretch) {
    const std::uint64_t block = (place.first_element + first) / kRandomBlockElements;
    Draws draws;
    draw_blocks(place, kRoundingStream, 0, block, draws.rounding);
    draw_blocks(place, kSamplingStream, 0, block, draws.sampling[0]);
    if (kGroup == 2) draw_blocks(place, kSamplingStream, 1, block, draws.sampling[1]);
    select_stretch<kGroup>(in.subspan(first, std::min(kStretch, in.size() - first)), kept, first,
                           draws, selection);
  }
}

void select(const Format& format, std::span<const float> in, const Place& place,
            Selection& selection) {
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

// Returns the smallest float32 scale at which no sent value clips. Returns NaN if a sent value is
// infinite. An element x that is sent with probability p is sent as x / p, which is the sum of its
// group's magnitudes with the sign of x. That sum may overflow.
float scale_for(std::uint32_t largest_sent) {
  if (largest_sent >= kInfinityBits) return std::numeric_limits<float>::quiet_NaN();
  const double sent = std::bit_cast<float>(largest_sent);
  const double most = largest(kE4M3);
  const auto scale = static_cast<float>(sent / most);
  if (scale * most >= sent) return scale;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scale) + 1);
}

void write_blocks(const Format& format, const Selection& selection, std::size_t blocks, float scale,
                  std::byte* out) {
  std::array<std::byte, kPacketElementsMax> codes;
  round_to_e4m3(std::span(selection.sent).first(selection.count), scale, selection.random.data(),
                codes.data());
  const std::size_t words = format.block_elements / kWordElements;
  const std::byte* next = codes.data();
  for (std::size_t block = 0; block < blocks; ++block, out += format.block_bytes) {
    const std::uint32_t* const bitmap = &selection.bitmap[block * words];
    std::memcpy(out, bitmap, words * sizeof(*bitmap));
    std::size_t count = 0;
    for (std::size_t w = 0; w < words; ++w)
      count += static_cast<std::size_t>(std::popcount(bitmap[w]));
    std::memcpy(out + words * sizeof(*bitmap), next, count);
    next += count;
  }
}

// Adds factor * value to `sum` for the kept elements of a block. The packet's last block may be
// short. Ignores bits of the bitmap past the last code or past the packet's end.
void accumulate_block(const Format& format, const std::byte* in, float factor,
                      std::span<float> sum) {
  const std::byte* code = in + format.block_elements / 8;
  const std::byte* const codes_end = in + format.block_bytes;
  for (std::size_t first = 0; first < sum.size(); first += kWordElements) {
    auto kept = load<std::uint32_t>(in + first / 8);
    const std::size_t left = sum.size() - first;
    if (left < kWordElements) kept &= (1u << left) - 1;
    for (; kept != 0 && code != codes_end; kept &= kept - 1) {
      float& element = sum[first + static_cast<std::size_t>(std::countr_zero(kept))];
      element = element + factor * kValuesE4M3[static_cast<std::size_t>(*code++)];
    }
  }
}

}  // namespace

void encode_sparse(const Format& format, std::span<const float> in, const Place& place,
                   std::byte* out) {
  LEEWAY_ASSERT(in.size() <= kPacketElementsMax);
  std::memset(out, 0, format.encoded_bytes(in.size()));
  if (largest_magnitude(in) >= kInfinityBits)
    return store(out, std::numeric_limits<float>::quiet_NaN());
  const std::size_t blocks = format.blocks(in.size());
  const std::size_t padded = blocks * format.block_elements;
  Selection selection;
  std::fill_n(selection.bitmap.begin(), padded / kWordElements, 0u);
  select(format, in, place, selection);
  if (selection.count == 0) return;
  const float scale =
      scale_for(largest_magnitude(std::span(selection.sent).first(selection.count)));
  store(out, scale);
  if (std::isnan(scale)) return;
  write_blocks(format, selection, blocks, scale, out + kScaleBytes);
}

void accumulate_sparse(const Format& format, const std::byte* in, float scale,
                       std::span<float> sum) {
  const auto packet_scale = load<float>(in);
  const float factor = scale * packet_scale;
  if (!std::isfinite(packet_scale)) {  // every element becomes NaN, also those that were not sent
    for (float& element : sum) element = element + factor * 0.0f;
  }
  for (std::size_t first = 0; first < sum.size(); first += format.block_elements) {
    const std::size_t count = std::min(format.block_elements, sum.size() - first);
    const std::byte* const block =
        in + kScaleBytes + first / format.block_elements * format.block_bytes;
    accumulate_block(format, block, factor, sum.subspan(first, count));
  }
}

void assign_sparse(const Format& format, const std::byte* in, float scale, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  accumulate_sparse(format, in, scale, out);
}

}  // namespace leeway::codec
