// Payload formats of elements, and the operations on them. The functions are pure and take spans;
// nothing here knows of packets, ranks' schedules or threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "leeway/codec.h"
#include "leeway/types.h"

namespace leeway::codec {

// Packets of one tensor start at multiples of this many elements, so that blocks never straddle two
// packets and random bits can be keyed by the block's place in the tensor.
inline constexpr std::size_t kPacketElementsMultiple = 32;

// kPacketElementsMax bounds the memory that a kernel has on its stack: 64 KiB of float32.
using leeway::kPacketElementsMax;

// Elements of a block of the randomised Hadamard transform.
inline constexpr std::size_t kRotationElements = 256;

// Place of one call's elements. It keys the random bits (seed, step, source rank, position in the
// tensor), so that a resend, another packet size or another machine gives the same bytes.
struct Place {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  Rank source = 0;  // rank of the elements; a rotation's signs do not depend on it
  std::uint64_t first_element =
      0;  // index in the tensor; a multiple of 16 if the format rounds stochastically
  // Encode only: address of the elements that the next call will read, to be fetched into the
  // cache; or null.
  const void* ahead = nullptr;
};

// What automatic rounding resolves to: terms of a sum round stochastically, so that their sum is
// unbiased; copies round to nearest.
enum class Purpose : std::uint8_t { sum, copy };

struct Format {
  CodecOptions options;  // resolved: neither codec, rounding nor scale_rule is automatic
  DataType element = DataType::f32;  // type of the tensor's elements
  std::size_t header_bytes = 0;      // once a packet
  std::size_t block_elements = 1;
  // Bytes of one block's scale and codes; a last, shorter block takes as many.
  std::size_t block_bytes = 4;

  bool stochastic() const { return options.rounding == Rounding::stochastic; }
  // Returns the options with `automatic` for each setting that this codec fixes. leeway::validate()
  // accepts them, and format_of() makes this format from them for any purpose.
  CodecOptions named() const;
  // Returns whether encoded bytes equal the tensor's memory. Packets can then be sent straight from
  // it.
  bool identity() const {
    if (options.rotate) return false;
    switch (options.codec) {
      case Codec::native:
        return true;
      case Codec::fp32:
        return element == DataType::f32;
      case Codec::fp16:
        return element == DataType::f16;
      case Codec::bf16:
        return element == DataType::bf16;
      default:
        return false;
    }
  }
  std::size_t blocks(std::size_t elements) const {
    return (elements + block_elements - 1) / block_elements;
  }
  std::size_t encoded_bytes(std::size_t elements) const {
    return header_bytes + blocks(elements) * block_bytes;
  }
  // Elements of a full packet whose payload may have `bytes_max` bytes: whole blocks, and a
  // multiple of kPacketElementsMultiple (of kRotationElements where a rotation fits).
  std::size_t elements_for(std::size_t bytes_max) const;
};

// Returns whether tensors of this type can be re-encoded: f32, f16 and bf16.
bool is_encodable(DataType dtype);

// `native` carries elements of any type as they lie in memory; for f32 that is fp32. The other
// codecs exist for encodable types. The options are valid and not Codec::automatic.
Format format_of(const CodecOptions& options, DataType dtype, Purpose purpose = Purpose::copy);

// The functions below take formats of encodable tensors. Encoded bytes may lie at any address, and
// decoding accepts any bytes. The encoded side, `out` when encoding and else `in`, must have
// format.encoded_bytes(number of elements) bytes. Unless Format::identity(), a packet has at most
// kPacketElementsMax elements.
//
// The bytes are a function of the elements' values: an f16 or bf16 tensor gives the same bytes as a
// float32 tensor of the same values. There is one exception: a format that equals the tensor's type
// keeps signalling NaN.

// encode_elements() and decode_elements() take elements as they lie in a tensor of the format's
// type, aligned for it. Decoded values are rounded to that type.
void encode_elements(const Format& format, ByteSpan in, const Place& place, MutableByteSpan out);
void decode_elements(const Format& format, ByteSpan in, const Place& place, MutableByteSpan out);

// Like encode_elements() and decode_elements(), but from and to float32, whatever the tensor's
// type.
void encode(const Format& format, std::span<const float> in, const Place& place,
            MutableByteSpan out);
void decode(const Format& format, ByteSpan in, const Place& place, std::span<float> out);

// sum += (scale * block scale) * code, each step rounded. For rotated formats sum and terms are in
// the rotated domain, where contributions of all sources can be added; restore() rotates back.
void accumulate(const Format& format, ByteSpan in, float scale, std::span<float> sum);
// sum = (scale * block scale) * code. For the first contribution, so that the caller need not clear
// the sum.
void accumulate_first(const Format& format, ByteSpan in, float scale, std::span<float> sum);
// Rotates a sum back; does nothing for formats without rotation.
void restore(const Format& format, const Place& place, std::span<float> sum);

}  // namespace leeway::codec
