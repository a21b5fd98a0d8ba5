// The third step of encoding: elements times inverse scales, rounded to codes and packed. Included once for every instruction set.
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
inline constexpr std::size_t kTile = 256;

#if LEEWAY_RAW_AVX512
using BestPacker = QuarterPacker;
#else
using BestPacker = Packer;
#endif

// What one plane of codes is made from. Block b has elements [b << block_shift, (b + 1) << block_shift) and inverses[b], readable also for
// the blocks that fill up the last 16.
struct CodePlane {
  std::span<const float> in;
  const float* inverses;
  int block_shift;
  const Place* place;
  std::uint32_t draw;
};

// What the packer stores at once: eight vectors.
HWY_INLINE std::size_t step_elements() { return 8 * hn::Lanes(Floats()); }

// Codes of `count` elements, the plane's from `first` on, which lie at `in`; whole steps.
template <Minifloat element, bool stochastic>
HWY_INLINE void put_steps(const CodePlane& plane, const BestPacker& packer, const float* in, std::size_t first, std::size_t count,
                          std::byte* out) {
  const std::size_t n = hn::Lanes(Floats());
  alignas(64) std::uint8_t random[kTile];
  if constexpr (stochastic) {
    const std::uint64_t block = (plane.place->first_element + first) / kRandomBlockElements;
    BestPacker::draw(*plane.place, plane.draw, block, kTile / kRandomBlockElements, random);
  }
  const auto scaled = [&](std::size_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(Floats(), in + i), hn::Set(Floats(), plane.inverses[(first + i) >> plane.block_shift]));
  };
  const auto codes = [&](std::size_t i) HWY_ATTR {
    return packer.template codes<element, stochastic>(scaled(i), scaled(i + n), scaled(i + 2 * n), scaled(i + 3 * n), random + i);
  };
  for (std::size_t i = 0; i < count; i += 8 * n) {
    packer.template store<element>(codes(i), codes(i + 4 * n), out + i * element.code_bits / 8);
  }
}

template <Minifloat element, bool stochastic>
void put_plane(const CodePlane& plane, std::byte* out) {
  const BestPacker packer;
  const std::size_t size = plane.in.size();
  std::size_t i = 0;
  for (; i + kTile <= size; i += kTile) {
    put_steps<element, stochastic>(plane, packer, plane.in.data() + i, i, kTile, out + i * element.code_bits / 8);
  }
  if (i == size) return;
  alignas(64) float padded[kTile] = {};
  alignas(64) std::byte codes[kTile];
  std::copy(plane.in.begin() + static_cast<std::ptrdiff_t>(i), plane.in.end(), padded);
  put_steps<element, stochastic>(plane, packer, padded, i, (size - i + step_elements() - 1) / step_elements() * step_elements(), codes);
  std::memcpy(out + i * element.code_bits / 8, codes, ((size - i) * element.code_bits + 7) / 8);
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
