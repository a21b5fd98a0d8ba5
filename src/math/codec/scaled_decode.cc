// Decodes the block-scaled formats, compiled for every instruction set. First each block's factor
// is computed. Then values of codes are multiplied by the factor and added to the sum. Product and
// sum are each rounded, as everywhere in this room.
#include <array>

#include "base/contracts.h"
#include "codec/block_scale.h"
#include "codec/load_store.h"
#include "codec/scaled.h"
#include "codec/scaled_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/scaled_decode.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/block_factors-inl.h"
#include "codec/code_values-inl.h"
#include "codec/scaled_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

#if LEEWAY_SCALED_VECTORS

inline constexpr std::size_t kBlocksMax = kPacketElementsMax / 16;

// Returns whether any FP8 code is a NaN or infinity that the decoder cannot read. Encoders send no
// such code, but any bytes must decode.
template <Minifloat element>
bool has_special_codes(const std::byte* codes, std::size_t count) {
  if constexpr (!decltype(decoder_of<element>())::kFiniteOnly) return false;
  const Bytes d;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(codes);
  const auto largest = hn::Set(d, static_cast<std::uint8_t>(element.magnitude_max));
  auto most = hn::Zero(d);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    most = hn::Max(most, hn::And(hn::LoadU(d, bytes + i), hn::Set(d, 0x7F)));
  }
  bool special = !hn::AllTrue(d, hn::Eq(hn::Max(most, largest), largest));
  for (; i < count; ++i) special |= (bytes[i] & 0x7F) > element.magnitude_max;
  return special;
}

// The codes of one packet, and the factor of each block.
struct Codes {
  const std::byte* at;
  const float* factors;
};

inline constexpr int kWholePacket = 31;  // log2 of a block's elements if the packet is one block

template <bool add>
HWY_INLINE void put(FloatVec factor, FloatVec value, float* sum) {
  const auto term = hn::Mul(factor, value);
  hn::StoreU(add ? hn::Add(hn::LoadU(Floats(), sum), term) : term, Floats(), sum);
}

// The block size is a template parameter: computed in the loop, it cost 10 % of the run time.
template <Minifloat element, int block_shift, bool add>
void sum_codes(const Codes& codes, std::span<float> sum) {
  using Decoder = decltype(decoder_of<element>());
  constexpr std::size_t kStep = Decoder::kStep;
  constexpr std::size_t kStepBytes = kStep * element.code_bits / 8;
  const auto step = [&](const std::byte* from, std::size_t first, float* to) HWY_ATTR {
    Decoder::decode(from, [&](std::size_t i, FloatVec values) HWY_ATTR {
      put<add>(hn::Set(Floats(), codes.factors[(first + i) >> block_shift]), values, to + i);
    });
  };
  std::size_t i = 0;
  for (; i + kStep <= sum.size(); i += kStep)
    step(codes.at + i * element.code_bits / 8, i, sum.data() + i);
  if (i == sum.size()) return;
  const std::size_t left = sum.size() - i;
  alignas(64) std::byte last_codes[kStepBytes] = {};
  alignas(64) float last[kStep] = {};
  std::memcpy(last_codes, codes.at + i * element.code_bits / 8, (left * element.code_bits + 7) / 8);
  if (add) std::copy_n(sum.data() + i, left, last);
  step(last_codes, i, last);
  std::copy_n(last, left, sum.data() + i);
}

// Decodes one packet. run() returns false and does nothing if only the scalar code can decode it.
template <bool add>
class Decoder {
 public:
  Decoder(const Format& format, const std::byte* in, float scale, std::span<float> sum)
      : format_(format), layout_(scaled_layout(format.options.codec)), in_(in), sum_(sum) {
    blocks_ = layout_.block == 0 ? 1 : (sum.size() + layout_.block - 1) / layout_.block;
    read_factors(scale);
  }

  bool run() {
    switch (format_.options.codec) {
      case Codec::nvfp4:
      case Codec::nvfp4_te:
        return sum_as<kE2M1, 4>();
      case Codec::mxfp4:
        return sum_as<kE2M1, 5>();
      case Codec::mxfp6_e2m3:
        return sum_as<kE2M3, 5>();
      case Codec::mxfp6_e3m2:
        return sum_as<kE3M2, 5>();
      case Codec::luq:
        return format_.options.draws == 1 && sum_as<kE3M0, kWholePacket>();
      case Codec::int8:
        return sum_as<kInteger8, kWholePacket>();
      default:
        return layout_.element == kE4M3 ? sum_fp8<kE4M3>() : sum_fp8<kE5M2>();
    }
  }

 private:
  void read_factors(float scale) {
    const std::byte* stored = in_ + format_.header_bytes;
    switch (layout_.block_scale) {
      case ScaleKind::none:
        factors_[0] = scale * (load<float>(in_) / static_cast<float>(format_.options.draws));
        return;
      case ScaleKind::float32:
        return float_factors(stored, blocks_, scale, factors_.data());
      case ScaleKind::power_of_two:
        return byte_factors(PowerOfTwoScale(), stored, blocks_, scale, factors_.data());
      default: {
        const bool tensor_engine = layout_.packet_scale == ScaleKind::tensor_engine;
        const float packet = tensor_engine ? 1.0f / te_encode_scale(load<float>(in_))
                                           : e8m0_value(load<std::uint8_t>(in_));
        return byte_factors(E4m3Scale{packet}, stored, blocks_, scale, factors_.data());
      }
    }
  }

  template <Minifloat element>
  bool sum_fp8() {
    if (layout_.block == 0) return sum_as<element, kWholePacket>();
    return layout_.block == 32 ? sum_as<element, 5>() : sum_as<element, 7>();
  }

  template <Minifloat element, int block_shift>
  bool sum_as() {
    const std::size_t scales = layout_.block == 0 ? 0 : blocks_ * scale_bytes(layout_.block_scale);
    const std::byte* codes = in_ + format_.header_bytes + scales;
    if (has_special_codes<element>(codes, sum_.size())) return false;
    sum_codes<element, block_shift, add>({codes, factors_.data()}, sum_);
    return true;
  }

  const Format& format_;
  const ScaledLayout layout_;
  const std::byte* in_;
  std::span<float> sum_;
  std::size_t blocks_;
  alignas(64) std::array<float, kBlocksMax + 16> factors_;  // room for whole vectors
};

void accumulate_kernel(const Format& format, const std::byte* in, float scale,
                       std::span<float> sum) {
  if (!Decoder<true>(format, in, scale, sum).run())
    scalar::accumulate_scaled(format, in, scale, sum);
}
void assign_kernel(const Format& format, const std::byte* in, float scale, std::span<float> out) {
  if (!Decoder<false>(format, in, scale, out).run()) scalar::assign_scaled(format, in, scale, out);
}

#else

void accumulate_kernel(const Format& format, const std::byte* in, float scale,
                       std::span<float> sum) {
  scalar::accumulate_scaled(format, in, scale, sum);
}
void assign_kernel(const Format& format, const std::byte* in, float scale, std::span<float> out) {
  scalar::assign_scaled(format, in, scale, out);
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {

HWY_EXPORT(accumulate_kernel);
HWY_EXPORT(assign_kernel);

void accumulate_scaled(const Format& format, const std::byte* in, float scale,
                       std::span<float> sum) {
  LEEWAY_ASSERT(sum.size() <=
                kPacketElementsMax);  // the kernels keep a packet's scales on the stack
  HWY_DYNAMIC_DISPATCH(accumulate_kernel)(format, in, scale, sum);
}
void assign_scaled(const Format& format, const std::byte* in, float scale, std::span<float> out) {
  LEEWAY_ASSERT(out.size() <=
                kPacketElementsMax);  // the kernels keep a packet's scales on the stack
  HWY_DYNAMIC_DISPATCH(assign_kernel)(format, in, scale, out);
}

}  // namespace leeway::codec
#endif
