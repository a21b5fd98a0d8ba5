// The codecs that have kernels, and what kernels know of each at compile time.
#pragma once

#include <cstddef>

#include "codec/block_scale.h"
#include "codec/scaled_layout.h"
#include "device_codec/arithmetic.h"
#include "device_codec/jobs.h"
#include "device_codec/packet_bytes.h"

namespace leeway::device_codec {

// The list of codecs that have kernels, for the kernels, for code that launches them, and for
// tests. int8, luq and sparse have none and run on the processor.
#define LEEWAY_DEVICE_CODECS(CALL) \
  CALL(fp16)                       \
  CALL(bf16)                       \
  CALL(fp8_e4m3)                   \
  CALL(fp8_e5m2)                   \
  CALL(fp8_e4m3_block)             \
  CALL(fp8_e5m2_block)             \
  CALL(mxfp8_e4m3)                 \
  CALL(mxfp8_e5m2)                 \
  CALL(mxfp6_e2m3)                 \
  CALL(mxfp6_e3m2)                 \
  CALL(mxfp4)                      \
  CALL(nvfp4)                      \
  CALL(nvfp4_te)

// Returns true if the format has a scale for the whole packet. An encoder must find that scale
// before it makes the first code.
constexpr bool reads_packets_twice(Codec which) {
  return codec::scaled_layout(which).packet_scale != codec::ScaleKind::none;
}

// Number of warps in a block of threads, which fills a multiprocessor. A warp waits for memory most
// of its time. So more warps with fewer registers are faster, as long as registers suffice
// (docs/measurements/device_codec.md). With 32 warps a lane has 64 registers, with 28 it has 72,
// with 24 it has 80, and with 20 it has 96.
inline constexpr unsigned kWarpsToRotate = 32;
constexpr unsigned warps_to_encode(Codec which) {
  if (reads_packets_twice(which)) return 24;
  return which == Codec::mxfp4 || which == Codec::fp16 ? 28 : 32;
}
constexpr unsigned warps_to_sum(Codec which) {
  return codec::scaled_layout(which).element == codec::kE5M2 ? 20 : 24;
}

// Layout of a packet of the codec (src/math/codec/README.md, "Wire layouts").
template <Codec which>
struct PacketFormat {
  static constexpr codec::ScaledLayout kLayout = codec::scaled_layout(which);
  static constexpr bool kSixteenBits = which == Codec::fp16 || which == Codec::bf16;
  using Element = std::conditional_t<which == Codec::fp16, Half, BFloat16>;  // if of 16 bits
  static constexpr int kBits = kSixteenBits ? 16 : kLayout.element.code_bits;
  static constexpr unsigned kHeaderBytes = codec::scale_bytes(kLayout.packet_scale);
  static constexpr unsigned kScaleBytes = codec::scale_bytes(kLayout.block_scale);
  // Number of elements that share a scale (a block), and number of lanes that have a block's
  // elements. A packet with one scale for all elements has no blocks.
  static constexpr bool kHasBlocks = kLayout.block != 0;
  static constexpr unsigned kBlock = kHasBlocks ? kLayout.block : 1;
  static constexpr unsigned kLanes = kBlock > kSliceElements ? kBlock / kSliceElements : 1;

  // codes_at() is where the codes of a packet begin, and bytes() is the packet's length. A last,
  // shorter block takes as much room as a whole one.
  static LEEWAY_GPU unsigned codes_at(unsigned elements) {
    return kHeaderBytes + blocks(elements) * kScaleBytes;
  }
  static LEEWAY_GPU unsigned bytes(unsigned elements) {
    return codes_at(elements) + blocks(elements) * kBlock * kBits / 8;
  }
  // Place of the scale of an element's block.
  static LEEWAY_GPU unsigned scale_at(unsigned element) {
    return kHeaderBytes + element / kBlock * kScaleBytes;
  }
  // Place in the packet, and length in bytes, of the codes of the step that begins with element
  // `step`.
  static LEEWAY_GPU unsigned step_at(unsigned elements, unsigned step) {
    return codes_at(elements) + step * kBits / 8;
  }
  static LEEWAY_GPU unsigned step_bytes(unsigned elements, unsigned step) {
    constexpr unsigned kWhole = kStepElements * kBits / 8;
    const unsigned left = bytes(elements) - step_at(elements, step);
    return left < kWhole ? left : kWhole;
  }

 private:
  static LEEWAY_GPU unsigned blocks(unsigned elements) { return (elements + kBlock - 1) / kBlock; }
};

// One packet of a job.
struct PacketOfJob {
  std::uint64_t first;  // index in the job
  unsigned elements;
  std::size_t at;  // place of its bytes

  LEEWAY_GPU PacketOfJob(const Packets& packets, unsigned index)
      : first(std::uint64_t{index} * packets.packet_elements),
        elements(packets.elements - first < packets.packet_elements
                     ? static_cast<unsigned>(packets.elements - first)
                     : packets.packet_elements),
        at(std::size_t{index} * packets.packet_bytes) {}

  // Returns the address of the packet's elements in a tensor.
  template <typename Byte>
  LEEWAY_GPU Byte* in(Byte* tensor, DataType type) const {
    return tensor + (type == DataType::f32 ? sizeof(float) : sizeof(Half)) * first;
  }
};

// ---- scales, as encoders choose them ----

// What the encoder of a packet's blocks needs of the packet's scale.
struct PacketScale {
  Inverse inverse;            // formats without blocks
  int code = 0;               // for NVFP4
  float encode_scale = 1.0f;  // for TransformerEngine's NVFP4
};

// Chooses the scale of a packet. `amax` has the bits of packet_limit(). All lanes call this
// function; the lane with `writes` stores the scale.
template <Codec which, bool stochastic>
LEEWAY_GPU PacketScale begin_packet(std::uint32_t amax, bool writes, std::byte* header) {
  using enum codec::ScaleKind;
  constexpr codec::ScaledLayout kLayout = PacketFormat<which>::kLayout;
  PacketScale scale;
  if constexpr (kLayout.packet_scale == float32) {
    const auto chosen = codec::float_scale(kLayout.element, amax, stochastic);
    scale.inverse = {chosen.inverse, chosen.rest};
    if (writes) store_anywhere(header, chosen.stored);
  } else if constexpr (kLayout.packet_scale == power_of_two) {
    scale.code = codec::nvfp4_packet_code(amax);
    if (writes) store_anywhere(header, static_cast<std::uint8_t>(scale.code));
  } else if constexpr (kLayout.packet_scale == tensor_engine) {
    scale.encode_scale = codec::te_encode_scale(std::bit_cast<float>(amax));
    if (writes) store_anywhere(header, amax);
  }
  return scale;
}

// The scale of a block whose largest magnitude has the bits `amax`.
template <Codec which, bool stochastic>
LEEWAY_GPU auto scale_of_block(const PacketScale& packet, ScaleRule rule, std::uint32_t amax) {
  using enum codec::ScaleKind;
  constexpr codec::ScaledLayout kLayout = PacketFormat<which>::kLayout;
  if constexpr (kLayout.block_scale == float32) {
    return codec::float_scale(kLayout.element, amax, stochastic);
  } else if constexpr (kLayout.block_scale == power_of_two) {
    return codec::mx_scale(kLayout.element, rule, amax);
  } else if constexpr (kLayout.packet_scale == power_of_two) {
    return codec::nvfp4_scale(amax, packet.code, stochastic);
  } else {
    return codec::te_scale(amax, packet.encode_scale, stochastic);
  }
}

// ---- scales, as decoders see them ----

// Returns the packet's factor from its header, which may hold any bytes.
template <Codec which>
LEEWAY_GPU float packet_factor(const std::byte* header) {
  using enum codec::ScaleKind;
  constexpr codec::ScaledLayout kLayout = PacketFormat<which>::kLayout;
  if constexpr (kLayout.packet_scale == float32) return load_anywhere<float>(header);
  if constexpr (kLayout.packet_scale == power_of_two)
    return codec::e8m0_value(load_anywhere<std::uint8_t>(header));
  if constexpr (kLayout.packet_scale == tensor_engine)
    return 1.0f / codec::te_encode_scale(load_anywhere<float>(header));
  return 1.0f;
}

// Loads the stored scale of an element's block. It is a byte, a float, or nothing, by format.
template <Codec which>
LEEWAY_GPU auto load_block_scale(const std::byte* header, unsigned element) {
  using enum codec::ScaleKind;
  using Format = PacketFormat<which>;
  if constexpr (Format::kLayout.block_scale == none) {
    return std::uint8_t{0};
  } else if constexpr (Format::kLayout.block_scale == float32) {
    return load_anywhere<float>(header + Format::scale_at(element));
  } else {
    return load_anywhere<std::uint8_t>(header + Format::scale_at(element));
  }
}

// Returns the factor on a block's codes: its scale times the packet's factor.
template <Codec which, typename Stored>
LEEWAY_GPU float block_factor(Stored scale, float packet) {
  using enum codec::ScaleKind;
  constexpr codec::ScaledLayout kLayout = PacketFormat<which>::kLayout;
  if constexpr (kLayout.block_scale == none) {
    return packet;
  } else if constexpr (kLayout.block_scale == float32) {
    return scale;
  } else if constexpr (kLayout.block_scale == power_of_two) {
    return codec::e8m0_value(scale);
  } else {
    // Unsigned E4M3: the sign bit is ignored.
    return code_value<codec::kE4M3>(scale & 0x7Fu) * packet;
  }
}

}  // namespace leeway::device_codec
