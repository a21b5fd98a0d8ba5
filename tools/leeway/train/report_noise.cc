// The part of the report on the gradients' noise, and on the codecs that Codec::automatic chose.
#include <algorithm>
#include <cmath>

#include "format.h"
#include "train/report_columns.h"
#include "train/report_lines.h"

namespace leeway::tools::train {
namespace {

using estimate::NoiseEstimate;
using MeanSquare = std::function<double(const NoiseEstimate&)>;

constexpr const char* kNothing = "-";

// Returns true if the estimate of |gradient|^2 may as well be 0. The report then shows a bound.
bool is_unclear(const NoiseEstimate& noise) {
  return noise.gradient_error > 0 && noise.gradient_mean_square < 2 * noise.gradient_error;
}

std::string ratio_text(const std::optional<NoiseEstimate>& noise) {
  const auto ratio = gradient_to_noise(noise);
  if (!ratio) return kNothing;
  return is_unclear(*noise) ? format("< %.3f", noise->ratio_at_most()) : format("%.3f", *ratio);
}

std::string rms_text(const std::optional<NoiseEstimate>& noise, const MeanSquare& mean_square) {
  return noise ? format("%.3g", rms(mean_square(*noise))) : kNothing;
}

std::string gradient_text(const std::optional<NoiseEstimate>& noise) {
  if (!noise || !is_unclear(*noise)) return rms_text(noise, &NoiseEstimate::gradient_mean_square);
  return format("< %.3g", rms(noise->gradient_mean_square + 2 * noise->gradient_error));
}

// Returns the codecs of all lossy runs together, in the order of their first use.
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
         row_by_column(report, "  gradient",
                       [&](Column column) { return gradient_text(noise_of(report, column)); }) +
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
  const auto ranks = static_cast<std::uint32_t>(report.ranks);
  if (!noise || !estimate::is_costly(*noise, ranks)) return "";
  const bool mostly_loss = noise->loss_variance > noise->quantisation_variance;
  return format(
      "\nwarning: at the end gradient / noise was %s, below sqrt(3) (arXiv\n"
      "2505.19115). This noise takes %.0f %% of the progress of a step. Most of it is of\n"
      "%s. More bits: a wider --codec, or automatic. More reliability:\n"
      "--delivery bounded:LOSS.\n",
      ratio_text(noise).c_str(), 100.0 * noise->progress_lost(ranks),
      mostly_loss ? "packet loss" : "quantisation");
}

}  // namespace leeway::tools::train
