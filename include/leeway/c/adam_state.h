// C: encodes the two moments of Adam, each element in one byte. The rules are those of
// leeway/adam_state.h.
#ifndef LEEWAY_C_ADAM_STATE_H
#define LEEWAY_C_ADAM_STATE_H

#include "leeway/c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// How moments are encoded. Decoding needs none of these options.
typedef struct leeway_adam_state_options {
  size_t size;                 // bytes of this struct
  double first_max;            // code of the largest first moment: 448 or 240
  int32_t power_of_two_scale;  // flag: round scales down to powers of two
  int32_t stochastic_flush;    // flag: small moments flush at random, not all at once
  uint64_t seed;               // keys the flush's random draws, with the two below
  uint64_t first_element;      // index of the span's first element in the whole state
  uint32_t step;               // the optimizer's step
  uint32_t reserved;           // 0
} leeway_adam_state_options;
// The defaults.
#define LEEWAY_ADAM_STATE_OPTIONS_INIT \
  { sizeof(leeway_adam_state_options), 448.0, 0, 0, 0, 0, 0, 0 }

// Writes the codes of the first moment, one byte for each element, and the scale that decodes them.
// Returns LEEWAY_INVALID_ARGUMENT and writes nothing if first_max is neither 448 nor 240.
LEEWAY_C_EXPORT leeway_status leeway_encode_adam_first(const float* moment, size_t count,
                                                       const leeway_adam_state_options* options,
                                                       uint8_t* codes, float* scale);
// Like leeway_encode_adam_first(), for the second moment.
LEEWAY_C_EXPORT leeway_status leeway_encode_adam_second(const float* moment, size_t count,
                                                        const leeway_adam_state_options* options,
                                                        uint8_t* codes, float* scale);
// Computes moment = code / scale. Returns LEEWAY_INVALID_ARGUMENT and writes nothing if the scale
// is not finite and above 0.
LEEWAY_C_EXPORT leeway_status leeway_decode_adam_first(const uint8_t* codes, size_t count,
                                                       float scale, float* moment);
// Like leeway_decode_adam_first(), for the second moment.
LEEWAY_C_EXPORT leeway_status leeway_decode_adam_second(const uint8_t* codes, size_t count,
                                                        float scale, float* moment);

#ifdef __cplusplus
}
#endif

#endif
