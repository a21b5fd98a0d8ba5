// Payload formats: how the elements of a float32, float16 or bfloat16 tensor travel.
//
// Each packet can be decoded by itself. Element and scale formats, wire layouts and rounding rules
// are specified in src/math/codec/README.md; `leeway codec list` prints bits per element and
// measured error of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "leeway/export.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

// Payload formats. `native` sends elements of any type as they lie in memory, bit for bit. The
// others re-encode float32, float16 and bfloat16 tensors. The number in each comment is bits per
// element, scales included, without the header of 1 to 4 bytes a packet. float16 and bfloat16
// tensors give the same bytes as the same values in float32. Decoded values are summed in float32
// and rounded to the tensor's type once.
enum class Codec : std::uint8_t {
  native = 0,
  fp32,            // 32
  fp16,            // 16, IEEE binary16
  bf16,            // 16
  fp8_e4m3,        // 8, OCP FP8; one float32 scale a packet
  fp8_e5m2,        // 8
  fp8_e4m3_block,  // 8.25; one float32 scale per 128 elements
  fp8_e5m2_block,  // 8.25
  mxfp8_e4m3,      // 8.25, OCP MX: one power-of-two scale per 32 elements
  mxfp8_e5m2,      // 8.25
  mxfp6_e2m3,      // 6.25
  mxfp6_e3m2,      // 6.25
  mxfp4,           // 4.25, elements E2M1
  nvfp4,           // 4.5, E2M1, an E4M3 scale per 16 elements and a power of two a packet
  // 4.5 bits, like nvfp4, with TransformerEngine's float32 second-level scale and its order of
  // operations
  nvfp4_te,
  // 4 bits x draws, logarithmic: zero and seven powers of two (arXiv 2112.10769); always stochastic
  luq,
  int8,  // 8, one float32 scale a packet
  // N:M: `kept` of every `group` elements as E4M3, plus a bitmap of one bit per element; always
  // stochastic
  sparse,
  // 4.5 to 16 bits, chosen from statistics of the gradients; see CodecOptions. float32 tensors only
  // (kUnsupported for float16 and bfloat16)
  automatic,
};
// Number of codecs, automatic included.
inline constexpr int kCodecCount = 19;
// to_string() returns the name that parse_codec_name() reads, such as "nvfp4". parse_codec_name()
// returns kInvalidArgument for an unknown name.
LEEWAY_EXPORT std::string_view to_string(Codec codec);
LEEWAY_EXPORT Result<Codec> parse_codec_name(std::string_view name);

// How a value is rounded: which of its two representable neighbours is sent.
enum class Rounding : std::uint8_t {
  automatic = 0,  // stochastic in reductions by codecs below 16 bits, nearest everywhere else
  // Rounds to nearest, ties to even. A single value has the least error, but rounding is biased:
  // errors of many ranks do not average out.
  nearest,
  // Rounds up or down at random, with the probability that makes the expectation exact. The random
  // bits are keyed, so a resend has the same bytes.
  stochastic,
};
// The name as parse_codec() reads it.
LEEWAY_EXPORT std::string_view to_string(Rounding rounding);

// How the power-of-two block scales of MX formats are chosen under nearest rounding. Stochastic
// rounding always uses `ceil`: a smaller scale would clip the block's maximum, which is a bias.
enum class ScaleRule : std::uint8_t {
  // the rule with the least error for each format: even for mxfp4, ceil for mxfp8_e4m3, floor for
  // the others
  automatic = 0,
  // the rule of the OCP specification's example: the scale follows from the largest power of two
  // that is not above the block's maximum, so the largest elements may clip
  floor,
  even,  // like floor, after rounding the maximum to the element's precision
  ceil,  // the smallest scale that does not clip
};
// The name as parse_codec() reads it.
LEEWAY_EXPORT std::string_view to_string(ScaleRule rule);

// A codec and how to use it. All ranks must agree on codec, rotate, draws, kept and group (a
// difference is reported as a mismatch). The other settings concern the encoder only, and ranks may
// differ in them.
//
// `automatic` starts with fp8_e4m3_block and chooses again every 16 reductions of the communicator,
// from statistics that all ranks exchanged 16 reductions before. It takes the fewest bits that keep
// the gradient above sqrt(3) times the noise of quantisation and packet loss, both as root mean
// squares (arXiv 2505.19115). Among the formats of that size it takes the one that suits the
// measured spread of the gradient's magnitudes.
struct CodecOptions {
  Codec codec = Codec::native;                  // the format
  Rounding rounding = Rounding::automatic;      // how values are rounded
  ScaleRule scale_rule = ScaleRule::automatic;  // MX formats: how block scales are chosen
  // Randomised Hadamard transform of 256 elements in front of any codec but native.
  bool rotate = false;
  // int8: clip the packet's elements at ACIQ's optimum for a Laplace distribution that has their
  // mean magnitude. Biased.
  bool clip = false;
  // luq: independent draws that are sent and averaged, 1 .. 4. More draws mean more bytes and less
  // variance.
  std::uint8_t draws = 1;
  std::uint16_t kept = 2;   // sparse: elements sent of each group, 1 .. group - 1
  std::uint16_t group = 4;  // sparse: 2, 4, 8, 16, 32 or 256
  // If > 0, scales that span a packet come from this bound instead of the packet's maximum, and
  // larger elements clip at it. Packets of small values then lose precision, so use it only where
  // values are known to reach about the bound (normalised networks). 0: scales are measured.
  float bound = 0.0f;

  // The native codec: elements travel as they are.
  constexpr CodecOptions() = default;
  // A codec with its default settings.
  // NOLINTNEXTLINE(google-explicit-constructor): `options.codec = Codec::nvfp4` reads as meant
  constexpr CodecOptions(Codec codec_in) : codec(codec_in) {}

  // Returns true if all settings are equal.
  friend constexpr bool operator==(const CodecOptions&, const CodecOptions&) = default;
};

// Text form: a codec's name, then its settings separated by colons: "nvfp4", "nvfp4:nearest",
// "mxfp4:floor:rotate", "luq:draws=2", "int8:clip", "sparse:1/2" (1 of every 2),
// "nvfp4_te:bound=1". Parsing a text and writing the result gives the same text, with the settings
// in this order. Parsing checks ranges and refuses settings that the codec does not have.
LEEWAY_EXPORT std::string to_string(const CodecOptions& options);
LEEWAY_EXPORT Result<CodecOptions> parse_codec(std::string_view text);
// Returns kInvalidArgument with the setting's name if a value is out of range or does not belong to
// the codec.
LEEWAY_EXPORT Status validate(const CodecOptions& options);

// Where a packet's elements come from. The place keys the random bits, so equal elements at the
// same place give equal bytes.
struct PacketPlace {
  std::uint64_t seed = 0;  // Options::seed
  std::uint32_t step = 0;  // the call
  Rank source = 0;         // the rank whose elements they are
  // Index in the tensor of the packet's first element; a multiple of 32.
  std::uint64_t first_element = 0;
};
// Most elements in a packet.
inline constexpr std::size_t kPacketElementsMax = 16384;

// Encode and decode the payload of one packet as reductions do, also for Rounding::automatic. For
// experiments, and for authors of a PayloadSource. Pure functions, thread-safe. Tensors are
// float32, float16 or bfloat16. They return kInvalidArgument for options that validate() refuses,
// Codec::automatic, another type, more than kPacketElementsMax elements, a first_element that is no
// multiple of 32, or a number of bytes other than encoded_bytes().
LEEWAY_EXPORT Result<std::size_t> encoded_bytes(const CodecOptions& options, DataType dtype,
                                                std::size_t elements);
LEEWAY_EXPORT Status encode_packet(const CodecOptions& options, ConstTensorView elements,
                                   const PacketPlace& place, MutableByteSpan bytes);
// Decodes a packet. Any bytes of the right length decode without error. If the codec rotates,
// elements are rotated back; the place's seed and step must then be the encoder's.
LEEWAY_EXPORT Status decode_packet(const CodecOptions& options, ByteSpan bytes,
                                   const PacketPlace& place, TensorView elements);

}  // namespace v0
}  // namespace leeway
