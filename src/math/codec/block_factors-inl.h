// Computes the factor on each block's codes in decoding: the caller's scale times the block's.
// Included once for every instruction set.
#if defined(LEEWAY_CODEC_BLOCK_FACTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_BLOCK_FACTORS_INL_H_
#undef LEEWAY_CODEC_BLOCK_FACTORS_INL_H_
#else
#define LEEWAY_CODEC_BLOCK_FACTORS_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "codec/block_scale.h"
#include "codec/block_scales-inl.h"
#include "codec/scaled_vectors-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

// Value of a block's E4M3 scale. Ignores the sign bit; code 0x7F gives NaN.
struct E4m3Scale {
  float packet;
  HWY_INLINE FloatVec value(WordVec code) const {
    const auto magnitude = hn::And(code, word(0x7F));
    const auto nan = hn::RebindMask(Floats(), hn::Eq(magnitude, word(0x7F)));
    const auto value = hn::IfThenElse(nan, float_of(word(0x7FC00000)), e4m3_values(magnitude));
    return hn::Mul(value, hn::Set(Floats(), packet));
  }
};

struct PowerOfTwoScale {
  HWY_INLINE FloatVec value(WordVec code) const {
    const auto power =
        hn::Max(hn::ShiftLeft<23>(code), word(0x400000));  // 2^-127, of code 0, is subnormal
    return float_of(hn::IfThenElse(hn::Eq(code, word(0xFF)), word(0x7FC00000), power));
  }
};

// Writes the factors of scales stored in one byte each. `factors` is filled up to whole vectors.
template <class BlockScale>
void byte_factors(const BlockScale& block_scale, const std::byte* stored, std::size_t blocks,
                  float scale, float* factors) {
  const hn::Rebind<std::uint8_t, Floats> d8;
  const std::size_t lanes = hn::Lanes(Floats());
  const auto put = [&](const std::uint8_t* codes, float* to) HWY_ATTR {
    const auto value = block_scale.value(hn::PromoteTo(Words(), hn::LoadU(d8, codes)));
    hn::StoreU(hn::Mul(hn::Set(Floats(), scale), value), Floats(), to);
  };
  const auto* codes = reinterpret_cast<const std::uint8_t*>(stored);
  std::size_t b = 0;
  for (; b + lanes <= blocks; b += lanes) put(codes + b, factors + b);
  if (b == blocks) return;
  std::uint8_t last[16] = {};
  std::memcpy(last, codes + b, blocks - b);
  put(last, factors + b);
}

inline void float_factors(const std::byte* stored, std::size_t blocks, float scale,
                          float* factors) {
  if (blocks == 0) return;  // memcpy must not see the null pointer of an empty packet
  std::memcpy(factors, stored, blocks * sizeof(float));
  std::transform(factors, factors + blocks, factors,
                 [scale](float block_scale) { return scale * block_scale; });
}

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
