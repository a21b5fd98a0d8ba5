#include "estimate/codec_choice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/contracts.h"
#include "estimate/codec_errors.h"
#include "estimate/noise.h"

namespace leeway::estimate {
namespace {

constexpr std::array kFourBits = {Codec::nvfp4};
constexpr std::array kSixBits = {Codec::mxfp6_e2m3, Codec::mxfp6_e3m2};
constexpr std::array kEightBits = {Codec::int8, Codec::fp8_e4m3_block, Codec::fp8_e5m2_block};
constexpr std::array<std::span<const Codec>, 3> kLevels = {kFourBits, kSixBits, kEightBits};
constexpr Codec kLastResort = Codec::bf16;

// Quantisation may always add this part of the loss variance. The rms of the noise then grows by
// 5 % (sqrt(1.1)), and to avoid that is not worth more bits.
constexpr double kPartOfLoss = 0.1;

const CodecErrors& errors_of(Codec codec) {
  const auto* entry = std::ranges::find(kCodecErrors, codec, &CodecErrors::codec);
  LEEWAY_ASSERT(entry != kCodecErrors.end());
  return *entry;
}

double interpolate(const ErrorsBySpread& errors, double sigma) {
  const double inside = std::clamp(sigma, kErrorSpreads.front(), kErrorSpreads.back());
  std::size_t upper = 1;
  while (kErrorSpreads[upper] < inside) ++upper;
  const double left = kErrorSpreads[upper - 1];
  const double part = (inside - left) / (kErrorSpreads[upper] - left);
  return std::lerp(errors[upper - 1], errors[upper], part);
}

double ratio_of(double decibel) {
  return std::pow(10.0, 0.1 * decibel);
}

bool is_finite(const ChoiceInputs& inputs) {
  return std::isfinite(inputs.sigma_log2) && std::isfinite(inputs.encoded_mean_square) &&
         std::isfinite(inputs.gradient_mean_square) && std::isfinite(inputs.loss_variance);
}

}  // namespace

double predicted_error(Codec codec, double sigma_log2) {
  return ratio_of(interpolate(errors_of(codec).power_db, sigma_log2));
}

double predicted_relative_error(Codec codec, double sigma_log2) {
  return ratio_of(interpolate(errors_of(codec).relative_db, sigma_log2));
}

double allowed_quantisation_variance(const ChoiceInputs& inputs) {
  const double loss_variance = std::max(0.0, inputs.loss_variance);
  const double total = inputs.gradient_mean_square / (kCriticalRatio * kCriticalRatio);
  return std::max(total - loss_variance, kPartOfLoss * loss_variance);
}

CodecOptions choose_codec(const ChoiceInputs& inputs) {
  if (!is_finite(inputs)) return kLastResort;
  const double sigma = inputs.sigma_log2;
  const double allowed = allowed_quantisation_variance(inputs);
  for (const std::span<const Codec> level : kLevels) {
    const Codec* best = nullptr;
    for (const Codec& codec : level) {
      if (!(inputs.encoded_mean_square * predicted_error(codec, sigma) <= allowed)) continue;
      if (best == nullptr ||
          predicted_relative_error(codec, sigma) < predicted_relative_error(*best, sigma)) {
        best = &codec;
      }
    }
    if (best != nullptr) return *best;
  }
  return kLastResort;
}

}  // namespace leeway::estimate
