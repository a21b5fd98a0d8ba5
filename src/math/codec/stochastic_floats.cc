// A kernel for runs of 128 elements, whose random words are drawn at once; the rest is encoded by
// the definition.
#include "codec/stochastic_floats.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "codec/random_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/stochastic_floats.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/philox-inl.h"
#include "codec/scaled_vectors-inl.h"
#include "codec/unaligned-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

#if LEEWAY_SCALED_VECTORS

constexpr std::size_t kRunBlocks = 8;  // the most blocks that random_blocks() draws at once
constexpr std::size_t kRunElements = kRunBlocks * kRandomBlockElements;

using HalfWords = hn::Rebind<std::uint16_t, Floats>;

// Random words of a run in the order of its elements: 16 bytes of draw 0, then 16 of draw 1, for
// each block.
class RandomWords {
 public:
  HWY_INLINE RandomWords(const Place& place, std::uint64_t block) {
    alignas(64) std::array<std::uint8_t, kRunBlocks * 16> draw;
    for (std::uint32_t half = 0; half < 2; ++half) {
      random_blocks(place, stream_tag(kRoundingStream, half), block, kRunBlocks, draw.data());
      for (std::size_t b = 0; b < kRunBlocks; ++b) {
        std::memcpy(&words_[b * kRandomBlockElements + std::size_t{8} * half], &draw[16 * b], 16);
      }
    }
  }
  HWY_INLINE WordVec at(std::size_t element) const {
    return hn::PromoteTo(Words(), hn::LoadU(HalfWords(), &words_[element]));
  }

 private:
  alignas(64) std::array<std::uint16_t, kRunElements> words_;
};

// Rounds by adding the random word to 16 fraction bits of the code and dropping them. Beyond the
// largest finite value it rounds to nearest. half_from_float() and bfloat16_from_float() do the
// same for one element.
struct Fp16 {
  static HWY_INLINE WordVec round(WordVec magnitude, WordVec random) {
    const auto normal = hn::ShiftLeft<3>(hn::Sub(magnitude, word(0x38000000)));
    // Clamped to the range that is used, as the emulated NearestInt() has no result beyond it.
    const auto subnormal = hn::Min(magnitude, word(0x38800000));
    const auto fixed_point =
        hn::NearestInt(hn::Mul(float_of(subnormal), hn::Set(Floats(), 0x1p40f)));
    const auto is_normal = hn::Gt(magnitude, word(0x387FFFFF));  // 2^-14 or more
    const auto code = hn::IfThenElse(is_normal, normal, hn::BitCast(Words(), fixed_point));
    return hn::ShiftRight<16>(hn::Add(code, random));
  }
  static HWY_INLINE WordVec nearest(WordVec magnitude) {
    const auto nan = hn::Or(hn::And(hn::ShiftRight<13>(magnitude), word(0x1FF)), word(0x7E00));
    const auto finite =
        hn::Lt(magnitude, word(0x477FF000));  // 65520, from where infinity is nearest
    const auto number = hn::IfThenElse(finite, word(0x7BFF), word(0x7C00));
    return hn::IfThenElse(hn::Gt(magnitude, word(0x7F800000)), nan, number);
  }
  static constexpr std::uint32_t kMax = internal::kHalfMax;
};

struct Bf16 {
  static HWY_INLINE WordVec round(WordVec magnitude, WordVec random) {
    return hn::ShiftRight<16>(hn::Add(magnitude, random));
  }
  static HWY_INLINE WordVec nearest(WordVec magnitude) {
    const auto nan = hn::Or(hn::ShiftRight<16>(magnitude), word(0x40));
    // A tie goes to infinity, whose code is even, so adding a half is enough.
    const auto number = hn::ShiftRight<16>(hn::Add(magnitude, word(0x8000)));
    return hn::IfThenElse(hn::Gt(magnitude, word(0x7F800000)), nan, number);
  }
  static constexpr std::uint32_t kMax = internal::kBFloat16Max;
};

template <typename Element>
HWY_INLINE void encode_vector(FloatVec v, WordVec random, std::byte* out) {
  const auto magnitude = magnitude_bits(v);
  const auto rounded = Element::round(magnitude, random);
  const auto beyond = hn::Gt(magnitude, word(Element::kMax));
  const auto code = hn::IfThenElse(beyond, Element::nearest(magnitude), rounded);
  const auto sign = hn::And(hn::ShiftRight<16>(bits_of(v)), word(0x8000));
  const auto result = hn::BitCast(Integers(), hn::Or(code, sign));
  store_unaligned(HalfWords(), hn::DemoteTo(HalfWords(), result), out);
}

template <typename Element>
HWY_INLINE void encode_runs(std::span<const float> in, const Place& place, std::byte* out) {
  for (std::size_t first = 0; first < in.size(); first += kRunElements) {
    const RandomWords random(place, (place.first_element + first) / kRandomBlockElements);
    for (std::size_t i = 0; i < kRunElements; i += hn::Lanes(Floats())) {
      encode_vector<Element>(hn::LoadU(Floats(), in.data() + first + i), random.at(i),
                             out + 2 * (first + i));
    }
  }
}

// Encodes whole runs from the start of `in`; returns how many elements these had.
std::size_t encode_kernel(Codec codec, std::span<const float> in, const Place& place,
                          std::byte* out) {
  const std::size_t count = in.size() / kRunElements * kRunElements;
  codec == Codec::fp16 ? encode_runs<Fp16>(in.first(count), place, out)
                       : encode_runs<Bf16>(in.first(count), place, out);
  return count;
}

#else

std::size_t encode_kernel(Codec, std::span<const float>, const Place&, std::byte*) {
  return 0;
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {
namespace {

HWY_EXPORT(encode_kernel);

std::array<std::uint16_t, kRandomBlockElements> random_words(const Place& place,
                                                             std::uint64_t block) {
  std::array<std::uint16_t, kRandomBlockElements> words;
  for (std::uint32_t draw = 0; draw < 2; ++draw) {
    const auto bytes = random_bytes(place, kRoundingStream, block, draw);
    for (std::size_t j = 0; j < 8; ++j) {
      words[std::size_t{8} * draw + j] =
          static_cast<std::uint16_t>(bytes[2 * j] | bytes[2 * j + 1] << 8);
    }
  }
  return words;
}

std::uint16_t encode_one(Codec codec, float value, std::uint16_t random) {
  return codec == Codec::fp16 ? half_from_float(value, random).bits
                              : bfloat16_from_float(value, random).bits;
}

}  // namespace

void encode_floats_stochastic(Codec codec, std::span<const float> in, const Place& place,
                              std::byte* out) {
  std::size_t first = HWY_DYNAMIC_DISPATCH(encode_kernel)(codec, in, place, out);
  for (; first < in.size(); first += kRandomBlockElements) {
    const auto random = random_words(place, (place.first_element + first) / kRandomBlockElements);
    const std::size_t count = std::min(kRandomBlockElements, in.size() - first);
    for (std::size_t j = 0; j < count; ++j) {
      const std::uint16_t code = encode_one(codec, in[first + j], random[j]);
      std::memcpy(out + 2 * (first + j), &code, sizeof(code));
    }
  }
}

}  // namespace leeway::codec
#endif
