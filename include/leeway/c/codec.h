// C: payload formats, which say how the elements of a tensor travel (src/math/codec/README.md).
#ifndef LEEWAY_C_CODEC_H
#define LEEWAY_C_CODEC_H

#include "leeway/c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A payload format.
typedef int32_t leeway_codec;
// Values of leeway_codec. The number in each comment is bits per element, scales included.
enum {
  LEEWAY_CODEC_NATIVE = 0,          // elements as they lie in memory
  LEEWAY_CODEC_FP32 = 1,            // 32
  LEEWAY_CODEC_FP16 = 2,            // 16
  LEEWAY_CODEC_BF16 = 3,            // 16
  LEEWAY_CODEC_FP8_E4M3 = 4,        // 8, one scale a packet
  LEEWAY_CODEC_FP8_E5M2 = 5,        // 8, one scale a packet
  LEEWAY_CODEC_FP8_E4M3_BLOCK = 6,  // 8.25
  LEEWAY_CODEC_FP8_E5M2_BLOCK = 7,  // 8.25
  LEEWAY_CODEC_MXFP8_E4M3 = 8,      // 8.25
  LEEWAY_CODEC_MXFP8_E5M2 = 9,      // 8.25
  LEEWAY_CODEC_MXFP6_E2M3 = 10,     // 6.25
  LEEWAY_CODEC_MXFP6_E3M2 = 11,     // 6.25
  LEEWAY_CODEC_MXFP4 = 12,          // 4.25
  LEEWAY_CODEC_NVFP4 = 13,          // 4.5
  LEEWAY_CODEC_NVFP4_TE = 14,       // 4.5, with TransformerEngine's order of operations
  LEEWAY_CODEC_LUQ = 15,            // 4 for each draw
  LEEWAY_CODEC_INT8 = 16,           // 8
  // Sends `kept` of every `group` elements as E4M3, plus a bitmap of one bit per element.
  LEEWAY_CODEC_SPARSE = 17,
  LEEWAY_CODEC_AUTOMATIC = 18  // 4.5 to 16, chosen from statistics of the gradients
};

// How a value is rounded: which of its two representable neighbours is sent.
typedef int32_t leeway_rounding;
// Values of leeway_rounding.
enum {
  LEEWAY_ROUNDING_AUTOMATIC = 0,  // stochastic in reductions below 16 bits, nearest elsewhere
  LEEWAY_ROUNDING_NEAREST = 1,    // nearest, ties to even
  LEEWAY_ROUNDING_STOCHASTIC = 2  // unbiased
};

// How the power-of-two scales of MX formats are chosen under nearest rounding.
typedef int32_t leeway_scale_rule;
// Values of leeway_scale_rule.
enum {
  LEEWAY_SCALE_RULE_AUTOMATIC = 0,  // the rule with the least error for each format
  LEEWAY_SCALE_RULE_FLOOR = 1,      // like the example of the OCP specification; clips
  LEEWAY_SCALE_RULE_EVEN = 2,       // floor of the rounded maximum
  LEEWAY_SCALE_RULE_CEIL = 3        // the smallest scale that does not clip
};

// A codec and its settings, like leeway::CodecOptions. The call that uses the options refuses
// values out of range.
typedef struct leeway_codec_options {
  size_t size;                   // bytes of this struct
  leeway_codec codec;            // the format
  leeway_rounding rounding;      // how values are rounded
  leeway_scale_rule scale_rule;  // MX formats: how block scales are chosen
  int32_t rotate;                // flag: randomised Hadamard transform in front of the codec
  int32_t clip;                  // int8, flag: clip at the optimum of ACIQ
  int32_t draws;                 // luq: independent draws, 1 .. 4
  int32_t kept;                  // sparse: elements sent of each group, 1 .. group - 1
  int32_t group;                 // sparse: 2, 4, 8, 16, 32 or 256
  double bound;                  // if > 0, |x| <= bound is known; 0 = measured. Kept as a float
} leeway_codec_options;
// The native codec: elements travel as they are.
#define LEEWAY_CODEC_OPTIONS_INIT \
  { sizeof(leeway_codec_options), 0, 0, 0, 0, 0, 1, 2, 4, 0.0 }

// Reads "nvfp4", "luq:draws=2", "sparse:1/2" and so on into `options`, whose member `size` must be
// set. If the text does not parse, returns LEEWAY_INVALID_ARGUMENT and quotes it.
LEEWAY_C_EXPORT leeway_status leeway_codec_parse(const char* text, leeway_codec_options* options);
// Writes the options as text, with a terminating 0, to `text`, which has room for `text_bytes`
// bytes; 64 are always enough. Returns LEEWAY_INVALID_ARGUMENT if the room is too small or a
// setting is out of range.
LEEWAY_C_EXPORT leeway_status leeway_codec_format(const leeway_codec_options* options, char* text,
                                                  size_t text_bytes);
// Returns LEEWAY_INVALID_ARGUMENT with the setting's name if a value is out of range or does not
// belong to the codec.
LEEWAY_C_EXPORT leeway_status leeway_codec_validate(const leeway_codec_options* options);

#ifdef __cplusplus
}
#endif

#endif
