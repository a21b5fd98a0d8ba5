#include "codec/inspection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "codec/standard_data.h"
#include "estimate/codec_choice.h"
#include "format.h"

namespace leeway::tools::codecs {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kPredictionElements = std::size_t{1} << 16;

// The formats that are compared, one of each kind that suits gradients. The formats fp8 with one
// scale for each packet and nvfp4_te are left out, because they are variants of formats in this
// list.
constexpr std::array kCandidates = {
    "luq",  "sparse:2/4",     "mxfp4",          "nvfp4",      "mxfp6_e3m2", "mxfp6_e2m3",
    "int8", "fp8_e5m2_block", "fp8_e4m3_block", "mxfp8_e4m3", "bf16",       "fp16"};

std::string reading_text(const FloatSource& source) {
  if (!source.bytes_total() || *source.bytes_total() == 0) {
    return format("reading, %.0f MiB so far", static_cast<double>(source.bytes_read()) / (1 << 20));
  }
  return format("reading, %.0f %%", 100.0 * static_cast<double>(source.bytes_read()) /
                                        static_cast<double>(*source.bytes_total()));
}

Status read_all(FloatSource& source, Inspection& inspection, const InspectProgress& progress) {
  while (true) {
    const auto piece = source.next();
    if (!piece.ok()) return piece.status();
    if (piece->empty()) return Status();
    inspection.fit.add(*piece);
    inspection.histogram.add(*piece);
    inspection.sample.add(*piece);
    progress(reading_text(source));
  }
}

// Replaces infinities and NaNs by zeros. Left in, they would make their whole block NaN in every
// format, but only the errors of the other values are of interest.
std::vector<float> finite_values(std::span<const float> values) {
  std::vector<float> finite(values.begin(), values.end());
  for (float& value : finite) {
    if (!std::isfinite(value)) value = 0.0f;
  }
  return finite;
}

std::vector<float> fitted_values(const estimate::LognormalFit& fit) {
  auto values = lognormal_values(kPredictionElements, fit.sigma_log2() * std::numbers::ln2, kSeed);
  const double median = std::exp2(fit.mean_log2());
  for (float& value : values) value = static_cast<float>(value * median);
  return values;
}

// Returns the signal to noise ratio of a format on `values`, in dB. Returns nullopt if there is no
// format or no signal, or if the format (fp16) overflowed.
std::optional<double> measured_decibel(const std::optional<codec::Format>& format,
                                       std::span<const float> values) {
  if (!format) return std::nullopt;
  const RoundTripError error = round_trip_error(*format, values, kSeed);
  if (error.signal == 0.0 || !std::isfinite(error.noise)) return std::nullopt;
  return error.decibel();
}

FormatError measure_format(const std::string& codec, std::span<const float> values,
                           std::span<const float> fitted) {
  const CodecOptions options = parse_codec(codec).value();
  const auto nearest = format_with(options, Rounding::nearest);
  const auto stochastic = format_with(options, Rounding::stochastic);
  FormatError error;
  error.codec = codec;
  error.bits = bits_per_element(nearest ? *nearest : *stochastic);
  error.nearest = measured_decibel(nearest, values);
  error.stochastic = measured_decibel(stochastic, values);
  error.nearest_predicted = measured_decibel(nearest, fitted);
  error.stochastic_predicted = measured_decibel(stochastic, fitted);
  return error;
}

std::vector<PruningPoint> pruning_points(const estimate::LognormalFit& fit,
                                         const std::vector<double>& sparsities) {
  const estimate::LognormalPruning pruning{fit.mean_log2() * std::numbers::ln2,
                                           fit.sigma_log2() * std::numbers::ln2};
  std::vector<PruningPoint> points;
  if (!(pruning.s > 0.0 && pruning.s < 30.0)) return points;  // its domain
  for (const double sparsity : sparsities) {
    const double threshold = pruning.threshold(sparsity);
    points.push_back({sparsity, threshold, pruning.cosine(threshold)});
  }
  return points;
}

std::vector<AutomaticChoice> automatic_choices(const estimate::LognormalFit& fit,
                                               std::uint32_t ranks) {
  std::vector<AutomaticChoice> choices;
  for (const double share : {1.0, 0.1, 0.01, 0.001}) {
    estimate::ChoiceInputs inputs;
    inputs.sigma_log2 = fit.sigma_log2();
    // Without loss, the average's quantisation error is 1 / ranks of the error of one contribution.
    inputs.encoded_mean_square = fit.mean_square() / ranks;
    inputs.gradient_mean_square = share * fit.mean_square();
    choices.push_back({share, to_string(estimate::choose_codec(inputs))});
  }
  return choices;
}

}  // namespace

Result<Inspection> inspect(FloatSource& source, const std::string& path,
                           const InspectOptions& options, const InspectProgress& progress) {
  Inspection inspection;
  inspection.path = path == "-" ? "standard input" : path;
  if (const Status status = read_all(source, inspection, progress); !status.ok()) return status;
  if (inspection.fit.count() == 0) {
    return Status::error(StatusCode::kUnavailable, "%s is empty", inspection.path.c_str());
  }
  const auto values = finite_values(inspection.sample.values());
  const auto fitted = fitted_values(inspection.fit);
  for (const char* codec : kCandidates) {
    progress(format("measuring %s", codec));
    inspection.formats.push_back(measure_format(codec, values, fitted));
  }
  std::stable_sort(inspection.formats.begin(), inspection.formats.end(),
                   [](const auto& a, const auto& b) { return a.bits < b.bits; });
  inspection.pruning = pruning_points(inspection.fit, options.sparsities);
  inspection.ranks = options.ranks;
  inspection.automatic = automatic_choices(inspection.fit, options.ranks);
  return inspection;
}

std::optional<std::size_t> best_format(const std::vector<FormatError>& formats, double bits,
                                       std::optional<double> FormatError::*measured) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const auto& ratio = formats[i].*measured;
    if (!ratio || formats[i].bits > bits) continue;
    if (!best || *ratio > *(formats[*best].*measured)) best = i;
  }
  return best;
}

}  // namespace leeway::tools::codecs
