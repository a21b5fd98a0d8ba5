// Chooses the codec for Codec::automatic: the fewest bits that keep the gradient above its noise.
// Among formats of that size it takes the one that suits the spread of log2|x|.
//
// Levels, by bits per element: 4.5 nvfp4; 6.25 mxfp6_e2m3 or mxfp6_e3m2; about 8 int8,
// fp8_e4m3_block or fp8_e5m2_block; 16 bf16. A pure function of averages that all ranks share, so
// that all choose alike. Derivation: README.md, "Choice of a codec".
#pragma once

#include <cstdint>

#include "leeway/codec.h"
#include "leeway/options.h"

namespace leeway::estimate {

struct ChoiceInputs {
  double sigma_log2 = 0.0;  // standard deviation of log2|x| of a contribution (LognormalFit)
  // Mean square of one contribution, per unit, times NoiseEstimate::encoded_share. A codec's
  // relative error times this is its noise in the result.
  double encoded_mean_square = 0.0;
  double gradient_mean_square = 0.0;  // of the exact gradient; negative if noise dominates
  double loss_variance =
      0.0;  // loss variance of the result (NoiseEstimate), and other noise that no codec changes
};

// Predict the error of a contribution whose log2|x| has this spread; >= 0. The first function
// returns noise power over signal power. The second returns the mean of |Q(x) - x|/|x|, where Q(x)
// is x after encoding and decoding. Only for the codecs named above.
double predicted_error(Codec codec, double sigma_log2);
double predicted_relative_error(Codec codec, double sigma_log2);

// Returns the largest quantisation variance that the result may have. With the loss variance it may
// fill a third of the gradient's mean square (the sqrt(3) rule). It may always be a tenth of the
// loss variance: where loss drowns the gradient, more bits would not help. Infinite or NaN if
// inputs are.
double allowed_quantisation_variance(const ChoiceInputs& inputs);

// Takes the lowest level that has a format within the allowed variance. If several formats of that
// level are within it, takes the one with the least relative error. Returns bf16 if there is none,
// or if an input is not finite. A smaller gradient never gets fewer bits.
CodecOptions choose_codec(const ChoiceInputs& inputs);

}  // namespace leeway::estimate
