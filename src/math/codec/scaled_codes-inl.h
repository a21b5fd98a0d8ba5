// The third step of encoding: elements times inverse scales, rounded to codes and packed. Included
// once for every instruction set.
#if defined(LEEWAY_CODEC_SCALED_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_SCALED_CODES_INL_H_
#undef LEEWAY_CODEC_SCALED_CODES_INL_H_
#else
#define LEEWAY_CODEC_SCALED_CODES_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <span>

#include "codec/code_bytes-inl.h"
#include "codec/code_bytes_avx512-inl.h"
#include "codec/scaled_vectors-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

// Elements whose random bytes are drawn together.
inline constexpr std::size_t kTile = 512;

#if LEEWAY_RAW_AVX512
using BestPacker = QuarterPacker;
#else
using BestPacker = Packer;
#endif

// How an element is divided by its scale and rounded. `drawn` multiplies by the inverse and rounds
// stochastically. `product` multiplies by the inverse and rounds to nearest. `fused` also adds the
// product with the inverse's rest (block_scale.h), and rounds to nearest.
enum class Quotient { drawn, product, fused };

// Input of the codes of one draw. Block b has elements [b << block_shift, (b + 1) << block_shift),
// inverses[b] and rests[b]. Both arrays are readable up to a multiple of 16 blocks.
template <typename T>
struct CodePlane {
  std::span<const T> in;
  const float* inverses;
  const float* rests;  // for Quotient::fused
  int block_shift;
  const Place* place;
  std::uint32_t draw;
};

// Elements that the packer stores at once: eight vectors.
HWY_INLINE std::size_t step_elements() {
  return 8 * hn::Lanes(Floats());
}

// Divides a vector of elements at `in` by their scale. The first is element `at` of the plane.
template <Quotient quotient, typename T>
HWY_INLINE FloatVec over_scale(const CodePlane<T>& plane, const T* in, std::size_t at) {
  const Floats d;
  const std::size_t block = at >> plane.block_shift;
  const auto inverse = hn::Set(d, plane.inverses[block]);
  const auto v = load_floats(in);
  if constexpr (quotient != Quotient::fused) return hn::Mul(v, inverse);
  return hn::MulAdd(v, inverse, hn::Mul(v, hn::Set(d, plane.rests[block])));
}

// The codes of four vectors at `in`, element `first` of the plane.
template <Minifloat element, Quotient quotient, typename T>
HWY_INLINE ByteVec four_vectors(const CodePlane<T>& plane, const BestPacker& packer, const T* in,
                                std::size_t first, const std::uint8_t* random) {
  const std::size_t n = hn::Lanes(Floats());
  const auto v0 = over_scale<quotient>(plane, in, first);
  const auto v1 = over_scale<quotient>(plane, in + n, first + n);
  const auto v2 = over_scale<quotient>(plane, in + 2 * n, first + 2 * n);
  const auto v3 = over_scale<quotient>(plane, in + 3 * n, first + 3 * n);
  return packer.template codes<element, quotient == Quotient::drawn>(v0, v1, v2, v3, random);
}

// Writes the codes of the `count` elements at `in`, which are the plane's elements from `first` on.
// `count` is a multiple of step_elements().
template <Minifloat element, Quotient quotient, typename T>
HWY_INLINE void put_steps(const CodePlane<T>& plane, const BestPacker& packer, const T* in,
                          std::size_t first, std::size_t count, std::byte* out) {
  const std::size_t n = hn::Lanes(Floats());
  alignas(64) std::uint8_t random[kTile];
  if constexpr (quotient == Quotient::drawn) {
    const std::uint64_t block = (plane.place->first_element + first) / kRandomBlockElements;
    BestPacker::draw(*plane.place, plane.draw, block, kTile / kRandomBlockElements, random);
  }
  for (std::size_t i = 0; i < count; i += 8 * n) {
    const auto a = four_vectors<element, quotient>(plane, packer, in + i, first + i, random + i);
    const auto b = four_vectors<element, quotient>(plane, packer, in + i + 4 * n, first + i + 4 * n,
                                                   random + i + 4 * n);
    packer.template store<element>(a, b, out + i * element.code_bits / 8);
  }
}

template <Minifloat element, Quotient quotient, typename T>
void put_plane(const CodePlane<T>& plane, std::byte* out) {
  const BestPacker packer;
  const std::size_t size = plane.in.size();
  std::size_t i = 0;
  for (; i + kTile <= size; i += kTile) {
    put_steps<element, quotient>(plane, packer, plane.in.data() + i, i, kTile,
                                 out + i * element.code_bits / 8);
  }
  if (i == size) return;
  alignas(64) T padded[kTile] = {};
  alignas(64) std::byte codes[kTile];
  std::copy(plane.in.begin() + static_cast<std::ptrdiff_t>(i), plane.in.end(), padded);
  put_steps<element, quotient>(plane, packer, padded, i,
                               (size - i + step_elements() - 1) / step_elements() * step_elements(),
                               codes);
  std::memcpy(out + i * element.code_bits / 8, codes, ((size - i) * element.code_bits + 7) / 8);
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
