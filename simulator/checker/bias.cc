#include "checker/bias.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

namespace leeway::sim {

void Bias::on_reduced(std::span<const double> reference, std::span<const float> result) {
  for (std::size_t first = 0; first < result.size(); first += packet_elements_) {
    const std::size_t last = std::min(first + packet_elements_, result.size());
    double error = 0;
    for (std::size_t i = first; i < last; ++i) error += result[i] - reference[i];
    error /= static_cast<double>(last - first);
    ++samples_;
    sum_ += error;
    sum_of_squares_ += error * error;
  }
}

void Bias::finish() {
  if (samples_ < kBiasSamplesLeast) {
    return check_.rule_out(format_text("%" PRIu64
                                       " packets were reduced; a bias is judged from %" PRIu64,
                                       samples_, kBiasSamplesLeast));
  }
  const auto count = static_cast<double>(samples_);
  const double mean = sum_ / count;
  const double variance = std::max(0.0, sum_of_squares_ / count - mean * mean);
  const double standard_error = std::sqrt(variance / count);
  check_.expect(std::abs(mean) <= kBiasSigmas * standard_error, [&] {
    return format_text("mean error %.3g over %" PRIu64 " packets, standard error %.3g", mean,
                       samples_, standard_error);
  });
}

}  // namespace leeway::sim
