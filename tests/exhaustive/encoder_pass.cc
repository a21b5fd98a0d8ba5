#include "exhaustive/encoder_pass.h"

#include <cstddef>
#include <span>
#include <vector>

#include "codec/codec.h"
#include "codec/minifloat.h"
#include "codec/scaled_layout.h"

namespace leeway::codec {
namespace {

constexpr std::size_t kBlock = 32;
constexpr std::size_t kBlocks = kPacketElementsMax / kBlock;
constexpr std::byte kScaleOfOne{127};

int code_at(std::span<const std::byte> codes, int code_bits, std::size_t element) {
  const std::size_t bit = element * static_cast<std::size_t>(code_bits);
  int window = static_cast<int>(codes[bit / 8]);
  if (bit / 8 + 1 < codes.size()) window |= static_cast<int>(codes[bit / 8 + 1]) << 8;
  return window >> (bit % 8) & ((1 << code_bits) - 1);
}

// Encodes one packet at a time. The first element of each block is the format's largest value, so
// that the block's scale is 1. The other elements are the next magnitudes to be tested, all of one
// sign.
class EncoderPass {
 public:
  EncoderPass(Codec codec, const Steps& steps, bool negative)
      : format_(format_of(nearest_under_ceiling(codec), DataType::f32)),
        element_(scaled_layout(codec).element),
        steps_(steps),
        sign_(negative ? 0x80000000 : 0),
        sign_code_(negative ? 1 << (element_.code_bits - 1) : 0),
        values_(kPacketElementsMax),
        bytes_(format_.encoded_bytes(kPacketElementsMax)) {}

  std::uint64_t count_differences(std::uint32_t begin, std::uint32_t end) {
    std::uint64_t wrong = 0;
    for (std::uint32_t bits = begin; bits < end; bits += kBlocks * (kBlock - 1)) {
      fill(bits, end);
      encode(format_, values_, Place{}, bytes_);
      wrong += compare();
    }
    return wrong;
  }

 private:
  static CodecOptions nearest_under_ceiling(CodecOptions options) {
    options.rounding = Rounding::nearest;
    options.scale_rule = ScaleRule::ceil;
    return options;
  }

  void fill(std::uint32_t bits, std::uint32_t end) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const bool pins = i % kBlock == 0;
      const float magnitude = pins || bits >= end ? largest(element_) : from_bits(bits);
      if (!pins && bits < end) ++bits;
      values_[i] = from_bits(std::bit_cast<std::uint32_t>(magnitude) | sign_);
    }
  }

  std::uint64_t compare() const {
    std::uint64_t wrong = 0;
    for (std::size_t block = 0; block < kBlocks; ++block) wrong += bytes_[block] != kScaleOfOne;
    const std::span codes = std::span(bytes_).subspan(kBlocks);
    auto next = steps_.begin();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (i % kBlock == 0) {
        wrong += code_at(codes, element_.code_bits, i) != (element_.magnitude_max | sign_code_);
        continue;
      }
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values_[i]) & 0x7FFFFFFF;
      while (next != steps_.end() && magnitude >= *next) ++next;
      const int expected = static_cast<int>(next - steps_.begin()) | sign_code_;
      wrong += code_at(codes, element_.code_bits, i) != expected;
    }
    return wrong;
  }

  Format format_;
  Minifloat element_;
  const Steps& steps_;
  std::uint32_t sign_;
  int sign_code_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

}  // namespace

std::uint64_t count_encoder_differences(Codec codec, const Steps& steps) {
  const auto past = std::bit_cast<std::uint32_t>(largest(scaled_layout(codec).element)) + 1;
  return sum_over_magnitudes(
      [&](std::uint32_t begin, std::uint32_t end) {
        std::uint64_t wrong = 0;
        for (const bool negative : {false, true}) {
          wrong += EncoderPass(codec, steps, negative).count_differences(begin, end);
        }
        return wrong;
      },
      past);
}

}  // namespace leeway::codec
