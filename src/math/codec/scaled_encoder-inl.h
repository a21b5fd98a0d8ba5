// The encoder of the block-scaled formats: largest magnitudes of blocks, scales, codes. Included
// once for every instruction set.
#if defined(LEEWAY_CODEC_SCALED_ENCODER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LEEWAY_CODEC_SCALED_ENCODER_INL_H_
#undef LEEWAY_CODEC_SCALED_ENCODER_INL_H_
#else
#define LEEWAY_CODEC_SCALED_ENCODER_INL_H_
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <type_traits>

#include "codec/block_maxima-inl.h"
#include "codec/block_scale.h"
#include "codec/block_scales-inl.h"
#include "codec/element.h"
#include "codec/load_store.h"
#include "codec/packet_limit.h"
#include "codec/scaled.h"
#include "codec/scaled_codes-inl.h"
#include "codec/scaled_layout.h"
#include "codec/scaled_vectors-inl.h"

#if LEEWAY_SCALED_VECTORS
HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {

inline constexpr std::size_t kEncodedBlocksMax = kPacketElementsMax / 16;

// Encodes one packet of a tensor's elements: float, Half or BFloat16.
template <typename T>
class Encoder {
 public:
  Encoder(const Format& format, std::span<const T> in, const Place& place, std::byte* out)
      : format_(format),
        layout_(scaled_layout(format.options.codec)),
        in_(in),
        place_(place),
        ahead_(static_cast<const T*>(place.ahead)),
        out_(out) {
    blocks_ = layout_.block == 0 ? 1 : (in.size() + layout_.block - 1) / layout_.block;
  }

  void run() {
    const bool any_blank = write_scales();
    if (!LEEWAY_FUSED && any_rest_) return run_defined();
    const std::size_t plane_bytes =
        format_.blocks(in_.size()) * format_.block_bytes / format_.options.draws -
        block_scale_bytes();
    std::byte* codes = out_ + format_.header_bytes + block_scale_bytes();
    for (std::uint32_t draw = 0; draw < format_.options.draws; ++draw, codes += plane_bytes) {
      put_codes(draw, codes);
      const std::size_t used =
          (in_.size() * static_cast<std::size_t>(layout_.element.code_bits) + 7) / 8;
      std::fill(codes + used, codes + plane_bytes, std::byte{0});
      if (any_blank) clear_blank_blocks(codes, plane_bytes);
    }
  }

 private:
  void run_defined() const {
    std::array<float, kPacketElementsMax> values;
    std::transform(in_.begin(), in_.end(), values.begin(), [](T value) {
      if constexpr (std::is_same_v<T, float>)
        return value;
      else
        return as_float(value);
    });
    scalar::encode_scaled(format_, std::span(values).first(in_.size()), place_, out_);
  }

  std::size_t block_scale_bytes() const {
    return layout_.block == 0 ? 0 : blocks_ * scale_bytes(layout_.block_scale);
  }

  // Writes the scales of the blocks to the packet, and their inverses and rests (BlockScale) to
  // inverses_ and rests_. Returns whether a block may be blank, which means that its inverse is 0.
  bool write_scales() {
    switch (layout_.block_scale) {
      case ScaleKind::none:
        return write_packet_scale();
      case ScaleKind::float32:
        block_maxima<128>(in_, ahead_, maxima_.data());
        return write_float_scales();
      case ScaleKind::power_of_two:
        block_maxima<32>(in_, ahead_, maxima_.data());
        return HWY_NAMESPACE::write_scales(
            PowerOfTwoRule(layout_.element, format_.options.scale_rule), maxima_.data(), blocks_,
            out_, inverses_.data(), rests_.data());
      default:
        block_maxima<16>(in_, ahead_, maxima_.data());
        return format_.stochastic() ? write_fp4_scales<true>() : write_fp4_scales<false>();
    }
  }

  bool write_packet_scale() {
    const std::uint32_t amax = packet_limit(format_.options, in_, largest_magnitude(in_, ahead_));
    const BlockScale<float> scale = float_scale(layout_.element, amax, format_.stochastic());
    store(out_, scale.stored);
    inverses_[0] = scale.inverse;
    rests_[0] = scale.rest;
    any_rest_ = scale.rest != 0.0f;
    return scale.inverse == 0.0f;
  }

  bool write_float_scales() {
    bool any_blank = false;
    for (std::size_t b = 0; b < blocks_; ++b) {
      const BlockScale<float> scale =
          float_scale(layout_.element, maxima_[b], format_.stochastic());
      store(out_ + b * sizeof(float), scale.stored);
      inverses_[b] = scale.inverse;
      rests_[b] = scale.rest;
      any_rest_ |= scale.rest != 0.0f;
      any_blank |= scale.inverse == 0.0f;
    }
    std::fill_n(inverses_.begin() + static_cast<std::ptrdiff_t>(blocks_), kBlocksAtOnce, 0.0f);
    std::fill_n(rests_.begin() + static_cast<std::ptrdiff_t>(blocks_), kBlocksAtOnce, 0.0f);
    return any_blank;
  }

  template <bool stochastic>
  bool write_fp4_scales() {
    const std::uint32_t amax = largest_finite_block();
    std::byte* stored = out_ + format_.header_bytes;
    if (layout_.packet_scale == ScaleKind::tensor_engine) {
      store(out_, std::bit_cast<float>(amax));
      const TensorEngineRule<stochastic> rule{te_encode_scale(std::bit_cast<float>(amax))};
      return HWY_NAMESPACE::write_scales(rule, maxima_.data(), blocks_, stored, inverses_.data(),
                                         rests_.data());
    }
    const int code = nvfp4_packet_code(amax);
    store(out_, static_cast<std::uint8_t>(code));
    const Nvfp4Rule<stochastic> rule{e8m0_value(254 - code)};
    any_rest_ = rule.kHasRests;
    return HWY_NAMESPACE::write_scales(rule, maxima_.data(), blocks_, stored, inverses_.data(),
                                       rests_.data());
  }

  std::uint32_t largest_finite_block() const {
    if (format_.options.bound > 0.0f) return std::bit_cast<std::uint32_t>(format_.options.bound);
    return largest_finite(maxima_.data(), blocks_);
  }

  void put_codes(std::uint32_t draw, std::byte* codes) const {
    const int block_shift = layout_.block == 0 ? 31 : std::countr_zero(layout_.block);
    const CodePlane<T> plane{in_, inverses_.data(), rests_.data(), block_shift, &place_, draw};
    switch (format_.options.codec) {
      case Codec::nvfp4:
      case Codec::nvfp4_te:
      case Codec::mxfp4:
        return put<kE2M1>(plane, codes);
      case Codec::mxfp6_e2m3:
        return put<kE2M3>(plane, codes);
      case Codec::mxfp6_e3m2:
        return put<kE3M2>(plane, codes);
      case Codec::luq:
        return put_plane<kE3M0, Quotient::drawn>(plane, codes);
      case Codec::int8:
        return put<kInteger8>(plane, codes);
      default:
        return layout_.element == kE4M3 ? put<kE4M3>(plane, codes) : put<kE5M2>(plane, codes);
    }
  }

  template <Minifloat element>
  void put(const CodePlane<T>& plane, std::byte* codes) const {
    if (format_.stochastic()) return put_plane<element, Quotient::drawn>(plane, codes);
    any_rest_ ? put_plane<element, Quotient::fused>(plane, codes)
              : put_plane<element, Quotient::product>(plane, codes);
  }

  void clear_blank_blocks(std::byte* codes, std::size_t plane_bytes) const {
    const std::size_t bytes = plane_bytes / std::max<std::size_t>(blocks_, 1);
    for (std::size_t b = 0; b < blocks_; ++b) {
      if (inverses_[b] == 0.0f) std::fill_n(codes + b * bytes, bytes, std::byte{0});
    }
  }

  const Format& format_;
  const ScaledLayout layout_;
  std::span<const T> in_;
  const Place& place_;
  const T* ahead_;
  std::byte* out_;
  std::size_t blocks_;
  // These have room for whole vectors, and are written before they are read.
  alignas(64) std::array<std::uint32_t, kEncodedBlocksMax + kBlocksAtOnce> maxima_;
  alignas(64) std::array<float, kEncodedBlocksMax + kBlocksAtOnce> inverses_;
  alignas(64) std::array<float, kEncodedBlocksMax + kBlocksAtOnce> rests_;  // where any_rest_
  bool any_rest_ = false;
};

}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();
#endif

#endif  // per-target include guard
