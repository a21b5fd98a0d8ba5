// The block-scaled formats element by element: the definition.
#include <array>
#include <cmath>
#include <vector>

#include "codec/block_scale.h"
#include "codec/load_store.h"
#include "codec/packet_limit.h"
#include "codec/random_bytes.h"
#include "codec/scaled.h"
#include "codec/scaled_layout.h"

namespace leeway::codec::scalar {
namespace {

std::span<const float> nth_block(std::span<const float> values, std::size_t block,
                                 std::size_t nth) {
  const std::size_t begin = nth * block;
  return values.subspan(begin, std::min(block, values.size() - begin));
}

// ---- scales ----

// Computes and writes one packet's scales, and keeps each block's inverse for quotient().
class ScaleWriter {
 public:
  ScaleWriter(const Format& format, std::span<const float> in, std::byte* out)
      : format_(format), layout_(scaled_layout(format.options.codec)), in_(in), out_(out) {}

  void write() {
    const std::size_t block = block_elements();
    const std::size_t blocks = (in_.size() + block - 1) / block;
    inverses_.resize(blocks);
    switch (layout_.block_scale) {
      case ScaleKind::none:
        return write_packet_scale();
      case ScaleKind::e4m3:
        return layout_.packet_scale == ScaleKind::tensor_engine ? write_tensor_engine()
                                                                : write_nvfp4();
      default:
        break;
    }
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::uint32_t amax = largest_magnitude(nth_block(in_, block, b));
      if (layout_.block_scale == ScaleKind::float32) {
        put(b, float_scale(layout_.element, amax, format_.stochastic()));
      } else {
        put(b, mx_scale(layout_.element, format_.options.scale_rule, amax));
      }
    }
  }

  std::size_t block_elements() const {
    return layout_.block == 0 ? std::max<std::size_t>(in_.size(), 1) : layout_.block;
  }
  bool is_blank(std::size_t element) const { return block_of(element).inverse == 0.0f; }
  // Returns an element divided by its scale.
  float quotient(std::size_t element) const {
    const Inverse& block = block_of(element);
    const float x = in_[element];
    return format_.stochastic() ? x * block.inverse : std::fma(x, block.inverse, x * block.rest);
  }

 private:
  struct Inverse {
    float inverse = 0.0f;
    float rest = 0.0f;
  };
  const Inverse& block_of(std::size_t element) const {
    return inverses_[element / block_elements()];
  }

  template <typename Stored>
  void put(std::size_t block, const BlockScale<Stored>& scale) {
    store(out_ + format_.header_bytes + block * sizeof(Stored), scale.stored);
    inverses_[block] = {scale.inverse, scale.rest};
  }

  void write_packet_scale() {
    const std::uint32_t amax = packet_limit(format_.options, in_, largest_magnitude(in_));
    const auto scale = float_scale(layout_.element, amax, format_.stochastic());
    store(out_, scale.stored);
    if (!inverses_.empty()) inverses_[0] = {scale.inverse, scale.rest};
  }

  std::uint32_t largest_finite_block() const {
    if (format_.options.bound > 0.0f) return std::bit_cast<std::uint32_t>(format_.options.bound);
    std::uint32_t packet = 0;
    for (std::size_t b = 0; b < inverses_.size(); ++b) {
      const std::uint32_t amax = largest_magnitude(nth_block(in_, layout_.block, b));
      if (amax < kInfinityBits) packet = std::max(packet, amax);
    }
    return packet;
  }

  void write_nvfp4() {
    const int packet_code = nvfp4_packet_code(largest_finite_block());
    store(out_, static_cast<std::uint8_t>(packet_code));
    for (std::size_t b = 0; b < inverses_.size(); ++b) {
      put(b, nvfp4_scale(largest_magnitude(nth_block(in_, layout_.block, b)), packet_code,
                         format_.stochastic()));
    }
  }

  void write_tensor_engine() {
    const float amax = std::bit_cast<float>(largest_finite_block());
    store(out_, amax);
    const float encode_scale = te_encode_scale(amax);
    for (std::size_t b = 0; b < inverses_.size(); ++b) {
      put(b, te_scale(largest_magnitude(nth_block(in_, layout_.block, b)), encode_scale,
                      format_.stochastic()));
    }
  }

  const Format& format_;
  ScaledLayout layout_;
  std::span<const float> in_;
  std::byte* out_;
  std::vector<Inverse> inverses_;
};

// Reads block scales as the decoder sees them, from any bytes.
class ScaleReader {
 public:
  ScaleReader(const Format& format, const std::byte* in)
      : format_(format), layout_(scaled_layout(format.options.codec)), in_(in) {
    if (layout_.packet_scale == ScaleKind::float32)
      packet_ = load<float>(in) / static_cast<float>(format.options.draws);
    if (layout_.packet_scale == ScaleKind::power_of_two)
      packet_ = e8m0_value(load<std::uint8_t>(in));
    if (layout_.packet_scale == ScaleKind::tensor_engine)
      packet_ = 1.0f / te_encode_scale(load<float>(in));
  }

  float scale(std::size_t element) const {
    if (layout_.block == 0) return packet_;
    const std::size_t block = element / layout_.block;
    const std::byte* at = in_ + format_.header_bytes + block * scale_bytes(layout_.block_scale);
    switch (layout_.block_scale) {
      case ScaleKind::float32:
        return load<float>(at);
      case ScaleKind::power_of_two:
        return e8m0_value(load<std::uint8_t>(at));
      default:  // unsigned E4M3: the sign bit is ignored
        return leeway::codec::decode(kE4M3, load<std::uint8_t>(at) & 0x7F) * packet_;
    }
  }

 private:
  const Format& format_;
  ScaledLayout layout_;
  const std::byte* in_;
  float packet_ = 1.0f;
};

// ---- codes ----

std::size_t codes_offset(const Format& format, std::size_t elements) {
  const ScaledLayout layout = scaled_layout(format.options.codec);
  return format.header_bytes +
         (layout.block == 0 ? 0 : format.blocks(elements) * scale_bytes(layout.block_scale));
}

// Writes a code of `bits` bits, little-endian, with element 0 in the lowest bits: the low nibble
// comes first, and four 6-bit codes take three bytes.
void put_code(std::byte* codes, int bits, std::size_t element, int code) {
  const std::size_t at = element * static_cast<std::size_t>(bits);
  const unsigned shifted = static_cast<unsigned>(code) << (at % 8);
  codes[at / 8] |= static_cast<std::byte>(shifted);
  if (shifted > 0xFF) codes[at / 8 + 1] |= static_cast<std::byte>(shifted >> 8);
}
int get_code(const std::byte* codes, int bits, std::size_t element) {
  const std::size_t at = element * static_cast<std::size_t>(bits);
  unsigned window = static_cast<unsigned>(codes[at / 8]) >> (at % 8);
  if (at % 8 + static_cast<std::size_t>(bits) > 8)
    window |= static_cast<unsigned>(codes[at / 8 + 1]) << (8 - at % 8);
  return static_cast<int>(window & ((1u << bits) - 1));
}

int element_code(const Minifloat& element, float scaled, bool stochastic, std::uint8_t random) {
  const int code =
      stochastic ? encode_stochastic(element, scaled, random) : encode_nearest(element, scaled);
  const int sign = 1 << (element.code_bits - 1);
  if (element == kE3M0 && (code & ~sign) == 0) return 0;  // LUQ has one zero
  if (element == kInteger8)
    return code >= sign ? (256 - (code - sign)) & 0xFF : code;  // two's complement
  return code;
}

float code_value(const Minifloat& element, int code) {
  if (element == kInteger8) return static_cast<float>(static_cast<std::int8_t>(code));
  if (element == kE3M0 && code == 8) return 0.0f;
  return leeway::codec::decode(element, code);
}

// Writes the codes of one draw. The codes of other draws are elsewhere in the packet.
void put_codes(const Format& format, const ScaleWriter& scales, std::span<const float> in,
               const Place& place, std::uint32_t draw, std::byte* codes) {
  const Minifloat element = scaled_layout(format.options.codec).element;
  std::array<std::uint8_t, kRandomBlockElements> random{};
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (format.stochastic() && i % kRandomBlockElements == 0) {
      random = random_bytes(place, kRoundingStream,
                            (place.first_element + i) / kRandomBlockElements, draw);
    }
    if (scales.is_blank(i)) continue;
    put_code(codes, element.code_bits, i,
             element_code(element, scales.quotient(i), format.stochastic(),
                          random[i % kRandomBlockElements]));
  }
}

std::size_t plane_bytes(const Format& format, std::size_t elements) {
  return format.blocks(elements) * format.block_bytes / format.options.draws;
}

// Returns the exact sum of all draws' values.
float element_value(const Format& format, const std::byte* codes, std::size_t elements,
                    std::size_t i) {
  const Minifloat element = scaled_layout(format.options.codec).element;
  if (format.options.draws == 1) return code_value(element, get_code(codes, element.code_bits, i));
  float sum = 0.0f;
  for (std::size_t draw = 0; draw < format.options.draws; ++draw) {
    sum += code_value(element,
                      get_code(codes + draw * plane_bytes(format, elements), element.code_bits, i));
  }
  return sum;
}

}  // namespace

void encode_scaled(const Format& format, std::span<const float> in, const Place& place,
                   std::byte* out) {
  std::fill(out, out + format.encoded_bytes(in.size()), std::byte{0});
  ScaleWriter scales(format, in, out);
  scales.write();
  for (std::uint32_t draw = 0; draw < format.options.draws; ++draw) {
    put_codes(format, scales, in, place, draw,
              out + codes_offset(format, in.size()) + draw * plane_bytes(format, in.size()));
  }
}

void assign_scaled(const Format& format, const std::byte* in, float scale, std::span<float> out) {
  const ScaleReader scales(format, in);
  const std::byte* codes = in + codes_offset(format, out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = (scale * scales.scale(i)) * element_value(format, codes, out.size(), i);
  }
}

void accumulate_scaled(const Format& format, const std::byte* in, float scale,
                       std::span<float> sum) {
  const ScaleReader scales(format, in);
  const std::byte* codes = in + codes_offset(format, sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] = sum[i] + (scale * scales.scale(i)) * element_value(format, codes, sum.size(), i);
  }
}

}  // namespace leeway::codec::scalar
