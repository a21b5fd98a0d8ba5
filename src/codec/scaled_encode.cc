// Encoding of the block-scaled formats, compiled for every instruction set: largest magnitudes of
// blocks, scales, codes.
#include <array>

#include "base/contracts.h"
#include "codec/block_scale.h"
#include "codec/packet_limit.h"
#include "codec/scaled.h"
#include "codec/scaled_layout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/scaled_encode.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "codec/block_maxima-inl.h"
#include "codec/block_scales-inl.h"
#include "codec/scaled_codes-inl.h"
#include "codec/scaled_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace leeway::codec {
namespace HWY_NAMESPACE {
namespace {

#if LEEWAY_SCALED_VECTORS

inline constexpr std::size_t kBlocksMax = kPacketElementsMax / 16;

class Encoder {
 public:
  Encoder(const Format& format, std::span<const float> in, const Place& place, std::byte* out)
      : format_(format),
        layout_(scaled_layout(format.options.codec)),
        in_(in),
        place_(place),
        out_(out) {
    blocks_ = layout_.block == 0 ? 1 : (in.size() + layout_.block - 1) / layout_.block;
  }

  void run() {
    const bool any_blank = write_scales();
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
  std::size_t block_scale_bytes() const {
    return layout_.block == 0 ? 0 : blocks_ * scale_bytes(layout_.block_scale);
  }

  template <typename T>
  void store(std::size_t at, T value) {
    std::memcpy(out_ + at, &value, sizeof(value));
  }

  // Whether a block may be blank.
  bool write_scales() {
    switch (layout_.block_scale) {
      case ScaleKind::none:
        return write_packet_scale();
      case ScaleKind::float32:
        block_maxima<128>(in_, place_.ahead, maxima_.data());
        return write_float_scales();
      case ScaleKind::power_of_two:
        block_maxima<32>(in_, place_.ahead, maxima_.data());
        return HWY_NAMESPACE::write_scales(
            PowerOfTwoRule(layout_.element, format_.options.scale_rule), maxima_.data(), blocks_,
            out_, inverses_.data());
      default:
        block_maxima<16>(in_, place_.ahead, maxima_.data());
        return format_.stochastic() ? write_fp4_scales<true>() : write_fp4_scales<false>();
    }
  }

  bool write_packet_scale() {
    const std::uint32_t amax =
        packet_limit(format_.options, in_, largest_magnitude(in_, place_.ahead));
    const BlockScale<float> scale = float_scale(layout_.element, amax);
    store(0, scale.stored);
    inverses_[0] = scale.inverse;
    return scale.inverse == 0.0f;
  }

  bool write_float_scales() {
    bool any_blank = false;
    for (std::size_t b = 0; b < blocks_; ++b) {
      const BlockScale<float> scale = float_scale(layout_.element, maxima_[b]);
      store(b * sizeof(float), scale.stored);
      inverses_[b] = scale.inverse;
      any_blank |= scale.inverse == 0.0f;
    }
    std::fill_n(inverses_.begin() + static_cast<std::ptrdiff_t>(blocks_), kBlocksAtOnce, 0.0f);
    return any_blank;
  }

  template <bool round_up>
  bool write_fp4_scales() {
    const std::uint32_t amax = largest_finite_block();
    std::byte* stored = out_ + format_.header_bytes;
    if (layout_.packet_scale == ScaleKind::tensor_engine) {
      store(0, std::bit_cast<float>(amax));
      const TensorEngineRule<round_up> rule{te_encode_scale(std::bit_cast<float>(amax))};
      return HWY_NAMESPACE::write_scales(rule, maxima_.data(), blocks_, stored, inverses_.data());
    }
    const int code = nvfp4_packet_code(amax);
    store(0, static_cast<std::uint8_t>(code));
    const Nvfp4Rule<round_up> rule{e8m0_value(254 - code)};
    return HWY_NAMESPACE::write_scales(rule, maxima_.data(), blocks_, stored, inverses_.data());
  }

  std::uint32_t largest_finite_block() const {
    if (format_.options.bound > 0.0f) return std::bit_cast<std::uint32_t>(format_.options.bound);
    return largest_finite(maxima_.data(), blocks_);
  }

  void put_codes(std::uint32_t draw, std::byte* codes) const {
    const int block_shift = layout_.block == 0 ? 31 : std::countr_zero(layout_.block);
    const CodePlane plane{in_, inverses_.data(), block_shift, &place_, draw};
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
        return put_plane<kE3M0, true>(plane, codes);
      case Codec::int8:
        return put<kInteger8>(plane, codes);
      default:
        return layout_.element == kE4M3 ? put<kE4M3>(plane, codes) : put<kE5M2>(plane, codes);
    }
  }

  template <Minifloat element>
  void put(const CodePlane& plane, std::byte* codes) const {
    format_.stochastic() ? put_plane<element, true>(plane, codes)
                         : put_plane<element, false>(plane, codes);
  }

  void clear_blank_blocks(std::byte* codes, std::size_t plane_bytes) const {
    const std::size_t bytes = plane_bytes / std::max<std::size_t>(blocks_, 1);
    for (std::size_t b = 0; b < blocks_; ++b) {
      if (inverses_[b] == 0.0f) std::fill_n(codes + b * bytes, bytes, std::byte{0});
    }
  }

  const Format& format_;
  const ScaledLayout layout_;
  std::span<const float> in_;
  const Place& place_;
  std::byte* out_;
  std::size_t blocks_;
  // Room for whole vectors; written before they are read.
  alignas(64) std::array<std::uint32_t, kBlocksMax + kBlocksAtOnce> maxima_;
  alignas(64) std::array<float, kBlocksMax + kBlocksAtOnce> inverses_;
};

void encode_kernel(const Format& format, std::span<const float> in, const Place& place,
                   std::byte* out) {
  Encoder(format, in, place, out).run();
}

#else

void encode_kernel(const Format& format, std::span<const float> in, const Place& place,
                   std::byte* out) {
  scalar::encode_scaled(format, in, place, out);
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace leeway::codec
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace leeway::codec {

HWY_EXPORT(encode_kernel);

void encode_scaled(const Format& format, std::span<const float> in, const Place& place,
                   std::byte* out) {
  LEEWAY_ASSERT(in.size() <=
                kPacketElementsMax);  // the kernels keep a packet's scales on the stack
  HWY_DYNAMIC_DISPATCH(encode_kernel)(format, in, place, out);
}

}  // namespace leeway::codec
#endif
