// Payload formats: how the elements of a float32, float16 or bfloat16 tensor travel.
//
// Each packet decodes alone. Element and scale formats, wire layouts and rounding rules are
// specified in src/codec/README.md; `leeway codec list` prints bits per element and measured error
// of each.
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

// `native` sends elements of any type as they lie in memory, bit for bit. The others re-encode
// float32, float16 and bfloat16 tensors; the number is bits per element, scales included, headers
// of 1 to 4 bytes a packet not. The bytes are those of the same values in float32. What is decoded
// is summed in float32 and rounded to the tensor's type once.
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
  // 4.5, the same with TransformerEngine's float32 second-level scale and its order of operations
  nvfp4_te,
  // 4 x draws, logarithmic: zero and seven powers of two (arXiv 2112.10769); always stochastic
  luq,
  int8,  // 8, one float32 scale a packet
  // N:M, `kept` of every `group` elements as E4M3, and a bit an element; always stochastic
  sparse,
  // 4.5 to 16, chosen from what the gradients look like; see CodecOptions. float32 tensors only
  // (kUnsupported for float16 and bfloat16)
  automatic,
};
// Number of codecs, automatic included.
inline constexpr int kCodecCount = 19;
// The name as parse_codec_name() reads it: "nvfp4". An unknown name is kInvalidArgument.
LEEWAY_EXPORT std::string_view to_string(Codec codec);
LEEWAY_EXPORT Result<Codec> parse_codec_name(std::string_view name);

// Which of the two neighbours of a value is sent.
enum class Rounding : std::uint8_t {
  automatic = 0,  // stochastic in reductions by codecs below 16 bits, nearest everywhere else
  // Ties to even. The least error of one value, but biased: errors of many ranks do not average
  // out.
  nearest,
  // Up with the probability that makes the expectation exact. Keyed, so a resend has the same
  // bytes.
  stochastic,
};
// The name as parse_codec() reads it.
LEEWAY_EXPORT std::string_view to_string(Rounding rounding);

// The power-of-two block scales of MX formats under nearest rounding. Stochastic rounding always
// takes `ceil`: any smaller scale clips the block's maximum, which is a bias.
enum class ScaleRule : std::uint8_t {
  // even for mxfp4, ceil for mxfp8_e4m3, floor for the others: the least error of each
  automatic = 0,
  // The OCP specification's example: the largest power of two of the block's maximum; clips
  floor,
  even,  // floor of the maximum rounded to the element's precision
  ceil,  // the smallest scale that does not clip
};
// The name as parse_codec() reads it.
LEEWAY_EXPORT std::string_view to_string(ScaleRule rule);

// A codec and how to use it. All ranks must agree on codec, rotate, draws, kept and group (a
// difference is reported as a mismatch); the rest is the encoder's own affair.
//
// automatic starts with fp8_e4m3_block and reconsiders every 16 reductions of the communicator,
// from statistics that all ranks exchanged 16 reductions before: it takes the fewest bits whose
// noise (quantisation and packet loss) leaves the gradient above the sqrt(3) rule of arXiv
// 2505.19115, and among formats of these bits the one for the measured spread of log2|x|.
struct CodecOptions {
  Codec codec = Codec::native;                  // the format
  Rounding rounding = Rounding::automatic;      // to its values
  ScaleRule scale_rule = ScaleRule::automatic;  // MX formats
  // Randomised Hadamard transform of 256 elements in front of any codec but native.
  bool rotate = false;
  // int8: clip at ACIQ's optimum for the packet's mean magnitude (Laplace); biased.
  bool clip = false;
  // luq: independent draws sent and averaged, 1 .. 4. Bytes grow with it, variance falls with it.
  std::uint8_t draws = 1;
  std::uint16_t kept = 2;   // sparse: elements sent of each group, 1 .. group - 1
  std::uint16_t group = 4;  // sparse: 2, 4, 8, 16, 32 or 256
  // > 0: |x| <= bound is known (normalised networks). Scales that span a packet then come from the
  // bound and not from the packet's maximum, and larger elements clip. 0: measured.
  float bound = 0.0f;

  // Elements travel as they are.
  constexpr CodecOptions() = default;
  // A codec with its default settings.
  // NOLINTNEXTLINE(google-explicit-constructor): `options.codec = Codec::nvfp4` reads as meant
  constexpr CodecOptions(Codec codec_in) : codec(codec_in) {}

  // True if all settings are equal.
  friend constexpr bool operator==(const CodecOptions&, const CodecOptions&) = default;
};

// Text form: a codec's name, then its settings separated by colons: "nvfp4", "nvfp4:nearest",
// "mxfp4:floor:rotate", "luq:draws=2", "int8:clip", "sparse:1/2" (1 of every 2),
// "nvfp4_te:bound=1". Writing what was read gives the same text in this order. Parsing checks
// ranges and refuses settings that the codec does not have.
LEEWAY_EXPORT std::string to_string(const CodecOptions& options);
LEEWAY_EXPORT Result<CodecOptions> parse_codec(std::string_view text);
// kInvalidArgument with the setting's name if a value is out of range or does not belong to the
// codec.
LEEWAY_EXPORT Status validate(const CodecOptions& options);

// Where the elements of a packet stand. Random bits are keyed by it, so that the same place gives
// the same bytes.
struct PacketPlace {
  std::uint64_t seed = 0;           // Options::seed
  std::uint32_t step = 0;           // the call
  Rank source = 0;                  // the rank whose elements they are
  std::uint64_t first_element = 0;  // in the tensor, of this packet's first; a multiple of 32
};
// Most elements of a packet.
inline constexpr std::size_t kPacketElementsMax = 16384;

// One packet's payload, as reductions send it (automatic rounding is theirs), for study and for
// those who bring a PayloadSource. Pure functions, thread-safe. Tensors are float32, float16 or
// bfloat16. kInvalidArgument: options that validate() refuses, Codec::automatic, another type, more
// than kPacketElementsMax elements, a place that is no multiple of 32, or bytes of another number
// than encoded_bytes().
LEEWAY_EXPORT Result<std::size_t> encoded_bytes(const CodecOptions& options, DataType dtype,
                                                std::size_t elements);
LEEWAY_EXPORT Status encode_packet(const CodecOptions& options, ConstTensorView elements,
                                   const PacketPlace& place, MutableByteSpan bytes);
// Any bytes decode. What was rotated is rotated back; the place's seed and step must be the
// encoder's then.
LEEWAY_EXPORT Status decode_packet(const CodecOptions& options, ByteSpan bytes,
                                   const PacketPlace& place, TensorView elements);

}  // namespace v0
}  // namespace leeway
