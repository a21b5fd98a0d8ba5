// One kernel for blocks of 256, compiled for every instruction set. rotation_scalar.cc does what is
// left of a packet.
//
// All targets agree in every bit, as strides ascend and each result is one rounded sum or
// difference of the same two values. Elements are scaled before the butterflies, so that no
// intermediate value overflows if the results are finite.
#include "codec/rotation.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "codec/random_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/rotation.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/philox-inl.h"
#include "codec/scaled_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

#if LEEWAY_SCALED_VECTORS

constexpr std::size_t kSignElements = 32;  // elements whose signs are in one word

// Returns `yes` in the lanes whose bit is set in `bits`, counted from the lowest, else `no`.
HWY_INLINE FloatVec by_bit(std::uint32_t bits, float yes, float no) {
  const Floats d;
  const auto own = hn::Shl(word(1), hn::Iota(Words(), 0));
  const auto set = hn::Ne(hn::And(word(bits), own), hn::Zero(Words()));
  return hn::IfThenElse(hn::RebindMask(d, set), hn::Set(d, yes), hn::Set(d, no));
}

// A butterfly between pairs of lanes, x and y; `other` holds them exchanged. The lane of x becomes
// x + y. The lane of y, which is set in `second`, becomes x - y. The product with 1 or -1 is exact,
// so that fusing changes no bit.
HWY_INLINE FloatVec butterfly(FloatVec v, FloatVec other, std::uint32_t second) {
  return hn::MulAdd(v, by_bit(second, -1.0f, 1.0f), other);
}

// Butterflies of all strides below the number of lanes.
HWY_INLINE FloatVec transform_lanes(FloatVec v) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  if (lanes >= 2) v = butterfly(v, hn::Shuffle2301(v), 0xAAAA);
  if (lanes >= 4) v = butterfly(v, hn::Shuffle1032(v), 0xCCCC);
  if (lanes == 8) v = butterfly(v, hn::ConcatLowerUpper(d, v, v), 0xF0F0);
  if (lanes == 16) {
    v = butterfly(v, hn::SwapAdjacentBlocks(v), 0xF0F0);
    v = butterfly(v, hn::ConcatLowerUpper(d, v, v), 0xFF00);
  }
  return v;
}

// Butterflies of one stride, a with b and c with d, then of twice that stride, a with c and b with
// d.
HWY_INLINE void transform_four(FloatVec& a, FloatVec& b, FloatVec& c, FloatVec& d) {
  const auto ab_sum = hn::Add(a, b);
  const auto ab_difference = hn::Sub(a, b);
  const auto cd_sum = hn::Add(c, d);
  const auto cd_difference = hn::Sub(c, d);
  a = hn::Add(ab_sum, cd_sum);
  b = hn::Add(ab_difference, cd_difference);
  c = hn::Sub(ab_sum, cd_sum);
  d = hn::Sub(ab_difference, cd_difference);
}

// Multiplies elements by 1/16, then makes the butterflies of strides up to twice the number of
// lanes.
HWY_INLINE void short_strides(float* values) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, 0.0625f);  // 1/sqrt(256)
  for (std::size_t i = 0; i < kRotationElements; i += 4 * lanes) {
    auto v0 = transform_lanes(hn::Mul(hn::LoadU(d, values + i), factor));
    auto v1 = transform_lanes(hn::Mul(hn::LoadU(d, values + i + lanes), factor));
    auto v2 = transform_lanes(hn::Mul(hn::LoadU(d, values + i + 2 * lanes), factor));
    auto v3 = transform_lanes(hn::Mul(hn::LoadU(d, values + i + 3 * lanes), factor));
    transform_four(v0, v1, v2, v3);
    hn::StoreU(v0, d, values + i);
    hn::StoreU(v1, d, values + i + lanes);
    hn::StoreU(v2, d, values + i + 2 * lanes);
    hn::StoreU(v3, d, values + i + 3 * lanes);
  }
}

// Butterflies of `stride` and of its double.
HWY_INLINE void two_strides(float* values, std::size_t stride) {
  const Floats d;
  for (std::size_t base = 0; base < kRotationElements; base += 4 * stride) {
    for (std::size_t i = base; i < base + stride; i += hn::Lanes(d)) {
      auto v0 = hn::LoadU(d, values + i);
      auto v1 = hn::LoadU(d, values + i + stride);
      auto v2 = hn::LoadU(d, values + i + 2 * stride);
      auto v3 = hn::LoadU(d, values + i + 3 * stride);
      transform_four(v0, v1, v2, v3);
      hn::StoreU(v0, d, values + i);
      hn::StoreU(v1, d, values + i + stride);
      hn::StoreU(v2, d, values + i + 2 * stride);
      hn::StoreU(v3, d, values + i + 3 * stride);
    }
  }
}

HWY_INLINE void last_stride(float* values) {
  const Floats d;
  constexpr std::size_t kStride = kRotationElements / 2;
  for (std::size_t i = 0; i < kStride; i += hn::Lanes(d)) {
    const auto low = hn::LoadU(d, values + i);
    const auto high = hn::LoadU(d, values + i + kStride);
    hn::StoreU(hn::Add(low, high), d, values + i);
    hn::StoreU(hn::Sub(low, high), d, values + i + kStride);
  }
}

// Each call makes the butterflies of one to six strides in one pass over the block.
HWY_INLINE void transform(float* values) {
  short_strides(values);
  std::size_t stride = 4 * hn::Lanes(Floats());
  for (; 2 * stride < kRotationElements; stride *= 4) two_strides(values, stride);
  if (stride < kRotationElements) last_stride(values);
}

// Negates elements, in a pass of its own: merged into the first pass of a rotation it was slower
// (26 against 32 GB/s).
HWY_INLINE void flip(float* values, const std::uint32_t* signs) {
  const Floats d;
  for (std::size_t i = 0; i < kRotationElements; i += hn::Lanes(d)) {
    const auto sign = by_bit(signs[i / kSignElements] >> i % kSignElements, -0.0f, 0.0f);
    hn::StoreU(hn::Xor(hn::LoadU(d, values + i), sign), d, values + i);
  }
}

// Signs of four blocks, a word for each 32 elements.
class Signs {
 public:
  static constexpr std::size_t kBlocks = 4;

  HWY_INLINE Signs(const Place& place, std::uint64_t element)
      : skipped_(element % kSignGroup / kSignElements) {
    Place shared = place;
    shared.source = 0;
    const std::size_t draws = skipped_ == 0 ? 8 : 16;
    random_blocks(shared, stream_tag(kRotationStream, 0), element / kSignGroup, draws,
                  bytes_.data());
  }
  HWY_INLINE const std::uint32_t* of_block(std::size_t block) {
    constexpr std::size_t kWords = kRotationElements / kSignElements;
    std::memcpy(words_.data(), bytes_.data() + 4 * (skipped_ + block * kWords), sizeof(words_));
    return words_.data();
  }

 private:
  std::size_t skipped_;  // words of the first draw that belong to elements before
  alignas(64) std::array<std::uint8_t, std::size_t{16} * 16> bytes_;
  std::array<std::uint32_t, kRotationElements / kSignElements> words_;
};

// Applies a function of (block, its signs) to every block of 256.
template <typename Apply>
HWY_INLINE void for_each_block(const Place& place, std::span<float> values, Apply apply) {
  for (std::size_t first = 0; first < values.size(); first += Signs::kBlocks * kRotationElements) {
    Signs signs(place, place.first_element + first);
    const std::size_t blocks =
        std::min(Signs::kBlocks, (values.size() - first) / kRotationElements);
    for (std::size_t b = 0; b < blocks; ++b) {
      apply(values.data() + first + b * kRotationElements, signs.of_block(b));
    }
  }
}

void rotate_blocks(const Place& place, std::span<float> values) {
  for_each_block(place, values, [](float* block, const std::uint32_t* signs) HWY_ATTR {
    flip(block, signs);
    transform(block);
  });
}
void unrotate_blocks(const Place& place, std::span<float> values) {
  for_each_block(place, values, [](float* block, const std::uint32_t* signs) HWY_ATTR {
    transform(block);
    flip(block, signs);
  });
}

#else

void rotate_blocks(const Place& place, std::span<float> values) {
  scalar::rotate(place, values);
}
void unrotate_blocks(const Place& place, std::span<float> values) {
  scalar::unrotate(place, values);
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {
namespace {

HWY_EXPORT(rotate_blocks);
HWY_EXPORT(unrotate_blocks);

Place place_after(Place place, std::size_t elements) {
  place.first_element += elements;
  return place;
}

std::size_t whole_blocks(std::size_t elements) {
  return elements / kRotationElements * kRotationElements;
}

}  // namespace

void rotate(const Place& place, std::span<float> values) {
  const std::size_t whole = whole_blocks(values.size());
  HWY_DYNAMIC_DISPATCH(rotate_blocks)(place, values.first(whole));
  scalar::rotate(place_after(place, whole), values.subspan(whole));
}

void unrotate(const Place& place, std::span<float> values) {
  const std::size_t whole = whole_blocks(values.size());
  HWY_DYNAMIC_DISPATCH(unrotate_blocks)(place, values.first(whole));
  scalar::unrotate(place_after(place, whole), values.subspan(whole));
}

}  // namespace leeway::codec
#endif
