// Vector types and small helpers shared by the kernels of the block-scaled formats. Included once
// for every instruction set.
#if defined(LEEWAY_CODEC_SCALED_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_SCALED_VECTORS_INL_H_
#undef LEEWAY_CODEC_SCALED_VECTORS_INL_H_
#else
#define LEEWAY_CODEC_SCALED_VECTORS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "codec/sixteen_bits-inl.h"
#include "leeway/types.h"

// On two kinds of targets the scalar definition replaces the kernels. The one-lane target has no
// bytes to shuffle. Where vectors have no size at compile time (SVE), the kernels' classes could
// not hold them. CMakeLists.txt leaves SVE out: ARM runs the NEON kernels.
#undef LEEWAY_SCALED_VECTORS
#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE
#define LEEWAY_SCALED_VECTORS 0
#else
#define LEEWAY_SCALED_VECTORS 1
#endif

// Hand-written AVX-512 where it is faster than Highway's; the gain stands beside each use.
#undef LEEWAY_RAW_AVX512
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define LEEWAY_RAW_AVX512 1
#else
#define LEEWAY_RAW_AVX512 0
#endif

// Processors with permutations of bytes (VBMI), from Ice Lake and Zen 4 on.
#undef LEEWAY_RAW_VBMI
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define LEEWAY_RAW_VBMI 1
#else
#define LEEWAY_RAW_VBMI 0
#endif

// Quotients that are rounded to nearest need fused instructions (block_scale.h). Processors from
// before 2013 have none, and run the definition.
#undef LEEWAY_FUSED
#if (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2) || !LEEWAY_SCALED_VECTORS
#define LEEWAY_FUSED 0
#else
#define LEEWAY_FUSED 1
#endif

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, because the smallest block has 16 elements: a vector of floats never straddles
// two blocks. Four vectors of floats become one of bytes.
using Floats = hn::CappedTag<float, 16>;
using Words = hn::Rebind<std::uint32_t, Floats>;
using Integers = hn::Rebind<std::int32_t, Floats>;
using Shorts = hn::Repartition<std::uint16_t, Floats>;
using Bytes = hn::Repartition<std::uint8_t, Floats>;

using FloatVec = hn::Vec<Floats>;
using WordVec = hn::Vec<Words>;
using ByteVec = hn::Vec<Bytes>;

HWY_INLINE WordVec word(std::uint32_t value) {
  return hn::Set(Words(), value);
}
HWY_INLINE WordVec bits_of(FloatVec v) {
  return hn::BitCast(Words(), v);
}
HWY_INLINE FloatVec float_of(WordVec v) {
  return hn::BitCast(Floats(), v);
}
HWY_INLINE WordVec magnitude_bits(FloatVec v) {
  return hn::And(bits_of(v), word(0x7FFFFFFF));
}

// A vector of a tensor's elements: the conversion of 16-bit elements is done in registers.
HWY_INLINE FloatVec load_floats(const float* from) {
  return hn::LoadU(Floats(), from);
}
HWY_INLINE FloatVec load_floats(const Half* from) {
  return load_half(Floats(), reinterpret_cast<const std::byte*>(from));
}
HWY_INLINE FloatVec load_floats(const BFloat16* from) {
  return load_bfloat16(Floats(), reinterpret_cast<const std::byte*>(from));
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
