#include "codec/inspect_report.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "codec/decibel.h"
#include "codec/text_table.h"
#include "format.h"

namespace leeway::tools::codecs {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kBarsMax = 24;

// Limits in bits an element: 4, 8 and 16 bits, plus scales. For each of them the report names the
// best format.
struct Budget {
  const char* name;
  double bits;
};
constexpr std::array<Budget, 3> kBudgets = {{{"4 bits", 5.1}, {"8 bits", 8.5}, {"16 bits", 16.0}}};

std::string facts_text(const Inspection& inspection) {
  const auto& fit = inspection.fit;
  const auto& histogram = inspection.histogram;
  std::string text = inspection.path + "\n";
  text += format("  elements    %.0f\n", fit.count());
  text += format("  zeros       %.0f (%.2f %%)\n", fit.zeros(), 100.0 * fit.zeros() / fit.count());
  text += format("  non-finite  %.0f\n", fit.non_finite());
  if (histogram.total() == 0) return text;
  text += format("  |x|         %.3g .. %.3g, zeros apart\n", histogram.magnitude_min(),
                 histogram.magnitude_max());
  text +=
      format("  mean x^2    %.4g, root %.4g\n", fit.mean_square(), std::sqrt(fit.mean_square()));
  text += format("  log2|x|     mean %.2f, spread (standard deviation) %.2f\n", fit.mean_log2(),
                 fit.sigma_log2());
  return text;
}

std::string best_text(const Inspection& inspection) {
  TextTable table({{"best for", Align::left},
                   {"one copy (nearest)", Align::left},
                   {"sums (stochastic)", Align::left}});
  const auto name = [&](double bits, std::optional<double> FormatError::*measured) {
    const auto best = best_format(inspection.formats, bits, measured);
    if (!best) return std::string("-");
    const FormatError& format = inspection.formats[*best];
    return format.codec + ", " + decibel_cell(format.*measured) + " dB";
  };
  for (const Budget& budget : kBudgets) {
    table.add_row({budget.name, name(budget.bits, &FormatError::nearest),
                   name(budget.bits, &FormatError::stochastic)});
  }
  return table.text();
}

std::string formats_text(const Inspection& inspection) {
  TextTable table({{"format", Align::left},
                   {"bits"},
                   {"nearest\nmeasured"},
                   {"\npredicted"},
                   {"stochastic\nmeasured"},
                   {"\npredicted"}});
  for (const FormatError& error : inspection.formats) {
    table.add_row({error.codec, format("%.3f", error.bits), decibel_cell(error.nearest),
                   decibel_cell(error.nearest_predicted), decibel_cell(error.stochastic),
                   decibel_cell(error.stochastic_predicted)});
  }
  return table.text();
}

std::string automatic_text(const Inspection& inspection) {
  std::string text =
      format("automatic takes, by the true gradient's part of mean x^2 (%u rank%s, no loss)\n",
             inspection.ranks, inspection.ranks == 1 ? "" : "s");
  for (const AutomaticChoice& choice : inspection.automatic) {
    text += format("  %5.4g %%  %s\n", 100.0 * choice.gradient_share, choice.codec.c_str());
  }
  return text;
}

std::string pruning_text(const Inspection& inspection) {
  TextTable table({{"zeros wanted"}, {"threshold of |x|"}, {"cosine to the original"}});
  for (const PruningPoint& point : inspection.pruning) {
    table.add_row({format("%.4g %%", 100.0 * point.sparsity), format("%.4g", point.threshold),
                   format("%.4f", point.cosine)});
  }
  return table.text();
}

std::string measured_on(const Inspection& inspection) {
  const std::size_t stride = inspection.sample.stride();
  std::string text = "Signal to noise in dB";
  if (stride > 1) text += format(", measured on every %zuth packet of 2,048", stride);
  if (inspection.fit.non_finite() > 0) text += ", non-finite elements as zeros";
  return text + ";\npredicted: for an exact lognormal of this mean and spread\n\n";
}

// Counts are kept as doubles, which are exact up to 2^53.
std::uint64_t whole(double count) {
  return static_cast<std::uint64_t>(count);
}

ordered_json format_json(const FormatError& format) {
  return {{"codec", format.codec},
          {"bits_per_element", format.bits},
          {"nearest_dB", decibel_json(format.nearest)},
          {"nearest_predicted_dB", decibel_json(format.nearest_predicted)},
          {"stochastic_dB", decibel_json(format.stochastic)},
          {"stochastic_predicted_dB", decibel_json(format.stochastic_predicted)}};
}

ordered_json best_json(const Inspection& inspection, std::optional<double> FormatError::*measured) {
  ordered_json json;
  for (const Budget& budget : kBudgets) {
    const auto best = best_format(inspection.formats, budget.bits, measured);
    json[budget.name] = best ? ordered_json(inspection.formats[*best].codec) : ordered_json();
  }
  return json;
}

ordered_json histogram_json(const MagnitudeHistogram& histogram) {
  ordered_json bins = ordered_json::array();
  for (int b = MagnitudeHistogram::kBinadeMin; b <= MagnitudeHistogram::kBinadeMax; ++b) {
    if (histogram.count(b) > 0) bins.push_back({{"log2", b}, {"count", histogram.count(b)}});
  }
  return bins;
}

}  // namespace

std::string inspect_text(const Inspection& inspection, std::size_t width) {
  std::string text = facts_text(inspection);
  if (inspection.histogram.total() == 0) return text + "\nNothing to encode.\n";
  const auto bars = histogram_bars(inspection.histogram, kBarsMax);
  text += "\nlog2|x|, rounded down\n" + histogram_text(bars, width);
  text.append("\n").append(measured_on(inspection)).append(formats_text(inspection));
  text.append("\n").append(best_text(inspection));
  text.append("\n").append(automatic_text(inspection));
  if (!inspection.pruning.empty())
    text += "\nUnbiased stochastic pruning\n" + pruning_text(inspection);
  return text;
}

std::string inspect_json(const Inspection& inspection) {
  const auto& fit = inspection.fit;
  ordered_json document = {{"file", inspection.path},
                           {"elements", whole(fit.count())},
                           {"zeros", whole(fit.zeros())},
                           {"non_finite", whole(fit.non_finite())},
                           {"magnitude_min", inspection.histogram.magnitude_min()},
                           {"magnitude_max", inspection.histogram.magnitude_max()},
                           {"mean_square", fit.mean_square()},
                           {"log2_mean", fit.mean_log2()},
                           {"log2_spread", fit.sigma_log2()},
                           {"sample_stride", inspection.sample.stride()}};
  document["histogram"] = histogram_json(inspection.histogram);
  document["formats"] = ordered_json::array();
  for (const FormatError& format : inspection.formats) {
    document["formats"].push_back(format_json(format));
  }
  document["best"] = {{"nearest", best_json(inspection, &FormatError::nearest)},
                      {"stochastic", best_json(inspection, &FormatError::stochastic)}};
  document["automatic"] = {{"ranks", inspection.ranks}, {"choices", ordered_json::array()}};
  for (const AutomaticChoice& choice : inspection.automatic) {
    document["automatic"]["choices"].push_back(
        {{"gradient_share", choice.gradient_share}, {"codec", choice.codec}});
  }
  document["pruning"] = ordered_json::array();
  for (const PruningPoint& point : inspection.pruning) {
    document["pruning"].push_back(
        {{"sparsity", point.sparsity}, {"threshold", point.threshold}, {"cosine", point.cosine}});
  }
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace leeway::tools::codecs
