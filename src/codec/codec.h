// How elements travel: payload formats, and the four things done with them. Pure functions on
// spans; nothing here knows of packets, ranks' schedules or threads.
//
// Every packet's payload decodes alone. A format may group elements in blocks that share a scale,
// put scales before the codes, and round stochastically; the formats so far are element by element,
// and round to nearest, ties to even. All processors produce identical bytes. Sums multiply and add
// as two rounded steps, never fused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "leeway/options.h"
#include "leeway/types.h"

namespace leeway::codec {

// Packets of one tensor start at multiples of this many elements, so that blocks (16 or 32
// elements) never straddle two packets and random bits can be keyed by the block's place in the
// tensor.
inline constexpr std::size_t kPacketElementsMultiple = 32;

// What stochastic rounding is keyed by (formats.md contract: seed, step, source rank, position in
// the tensor), so that a resend, another packet size or another machine gives the same bytes.
// Formats that round to nearest ignore it.
struct EncodeContext {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  Rank source = 0;
  std::uint64_t first_element = 0;  // of the span being encoded, counted in the tensor
};

struct Format {
  Codec id = Codec::fp32;
  DataType element = DataType::f32;  // type of the tensor's elements
  std::size_t header_bytes = 0;      // once a packet
  std::size_t block_elements = 1;
  std::size_t block_bytes = 4;  // scale and codes of one block; a last, shorter block takes as much

  // Encoded bytes equal the tensor's memory: nothing needs to be encoded, packets may be gathered
  // from it.
  bool identity() const {
    return header_bytes == 0 && block_elements == 1 && block_bytes == size_of(element);
  }
  std::size_t encoded_bytes(std::size_t elements) const {
    return header_bytes + (elements + block_elements - 1) / block_elements * block_bytes;
  }
  // Elements of a full packet whose payload may have `bytes_max` bytes: a multiple of
  // kPacketElementsMultiple.
  std::size_t elements_for(std::size_t bytes_max) const {
    const std::size_t elements = (bytes_max - header_bytes) / block_bytes * block_elements;
    return elements / kPacketElementsMultiple * kPacketElementsMultiple;
  }
};

// `native` carries elements of any type as they lie in memory; for f32 that is fp32. The other
// codecs exist for f32.
const Format& format_of(Codec codec, DataType dtype);

// The functions below take formats of f32 tensors, and the native ones of f16 and bf16, whose
// elements they convert to and from float. Encoded bytes may lie at any address; out.size()
// (encode) and in.size() (the others) must be format.encoded_bytes(number of floats).
void encode(const Format& format, std::span<const float> in, const EncodeContext& context,
            MutableByteSpan out);
void decode(const Format& format, ByteSpan in, std::span<float> out);
// sum += scale * decode(in)
void accumulate(const Format& format, ByteSpan in, float scale, std::span<float> sum);
// sum = scale * decode(in), which spares clearing
void accumulate_first(const Format& format, ByteSpan in, float scale, std::span<float> sum);

}  // namespace leeway::codec
