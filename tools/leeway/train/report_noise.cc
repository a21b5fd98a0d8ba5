// What the report says about noise on gradients, and about the codecs that were chosen for it.
#include <algorithm>
#include <cmath>

#include "train/report_columns.h"
#include "train/report_lines.h"

namespace leeway::tools::train {
namespace {

using estimate::NoiseEstimate;
using MeanSquare = std::function<double(const NoiseEstimate&)>;

constexpr const char* kNothing = "-";

std::string ratio_text(const std::optional<NoiseEstimate>& noise) {
  const auto ratio = gradient_to_noise(noise);
  return ratio ? format("%.3f", *ratio) : kNothing;
}

std::string rms_text(const std::optional<NoiseEstimate>& noise, const MeanSquare& mean_square) {
  return noise ? format("%.3g", rms(mean_square(*noise))) : kNothing;
}

// Of all lossy runs together, in the order of their first use.
std::vector<CodecSteps> codecs_of_all_seeds(const TrainReport& report) {
  std::vector<CodecSteps> all;
  for (const SeedOutcome& outcome : report.outcomes) {
    for (const CodecSteps& used : outcome.lossy.codecs) {
      const auto known = std::find_if(all.begin(), all.end(), [&](const CodecSteps& other) {
        return other.codec == used.codec;
      });
      if (known == all.end()) {
        all.push_back(used);
      } else {
        known->steps += used.steps;
      }
    }
  }
  return all;
}

// The noise that the caller can do something about here, beside the noise that was there before.
std::string beside_batches(const NoiseEstimate& noise, int ranks) {
  const double batches = noise.dispersion / ranks;
  if (batches <= 0.0) return "";
  return format(" It adds %.0f %% to the\nvariance that the batches have anyway.",
                100.0 * noise.variance() / batches);
}

}  // namespace

std::string noise_rows(const TrainReport& report) {
  const auto part = [&](const char* name, const MeanSquare& mean_square) {
    return row_by_column(report, name, [&](Column column) {
      return rms_text(noise_of(report, column), mean_square);
    });
  };
  const auto of_batches = [&](const NoiseEstimate& n) { return n.dispersion / report.ranks; };
  return row_by_column(report, "gradient / noise, rms",
                       [&](Column column) { return ratio_text(noise_of(report, column)); }) +
         part("  gradient", [](const NoiseEstimate& n) { return n.gradient_mean_square; }) +
         part("  noise of quantisation",
              [](const NoiseEstimate& n) { return n.quantisation_variance; }) +
         part("  noise of packet loss", [](const NoiseEstimate& n) { return n.loss_variance; }) +
         part("  (noise of the batches)", of_batches);
}

std::string codec_rows(const TrainReport& report) {
  if (report.settings.reduce.codec.codec != Codec::automatic) return "";
  const auto seeds = static_cast<double>(report.outcomes.size());
  std::string text;
  for (const CodecSteps& used : codecs_of_all_seeds(report)) {
    const std::string name = "steps with " + to_string(used.codec);
    text +=
        row_of_lossy(report, name.c_str(), format("%.4g", static_cast<double>(used.steps) / seeds));
  }
  return text;
}

std::string noise_warning(const TrainReport& report) {
  const auto noise = noise_of(report, Column::lossy);
  const auto ratio = gradient_to_noise(noise);
  if (!ratio || *ratio >= estimate::kCriticalRatio) return "";
  const bool mostly_loss = noise->loss_variance > noise->quantisation_variance;
  return format(
             "\nwarning: at the end gradient / noise was %.2f, below sqrt(3), where noise begins\n"
             "to cost a step of ideal length more than a quarter (arXiv 2505.19115). Most\n"
             "is of %s. More bits: a wider --codec, or automatic. More\n"
             "reliability: --delivery bounded:LOSS.",
             *ratio, mostly_loss ? "packet loss" : "quantisation") +
         beside_batches(*noise, report.ranks) + "\n";
}

}  // namespace leeway::tools::train
