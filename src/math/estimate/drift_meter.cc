#include "estimate/drift_meter.h"

#include <algorithm>
#include <cmath>

#include "base/contracts.h"

namespace leeway::estimate {

DriftMeter::DriftMeter(std::size_t positions, std::uint32_t window)
    : window_(window), positions_(positions) {
  LEEWAY_ASSERT(window_ >= 2);
}

// Pairs follow from distances to the owner: the mean of (d_a - d_b)^2 over all pairs of m values is
// 2 (m sum d^2 - (sum d)^2) / (m (m-1)). So the time grows with m and not with its square.
void DriftMeter::add_sample(std::span<const float> values, Rank owner) {
  LEEWAY_ASSERT(owner < values.size());
  double sum = 0.0;
  double squares = 0.0;
  for (const float value : values) {  // the owner's own distance is 0 and adds nothing
    const double distance = static_cast<double>(value) - values[owner];
    sum += distance;
    squares += distance * distance;
  }
  const auto others = static_cast<double>(values.size() - 1);
  if (values.size() < 2 || !std::isfinite(squares)) return;
  ++samples_;
  owner_.add(squares / others);
  if (others < 2) return;
  pair_.add(2.0 * std::max(0.0, others * squares - sum * sum) / (others * (others - 1.0)));
}

void DriftMeter::add_step(std::span<const float> delta) {
  LEEWAY_ASSERT(delta.size() == positions_.size());
  ++steps_;
  for (std::size_t i = 0; i < delta.size(); ++i) {
    const double deviation = delta[i] - positions_[i].mean;
    positions_[i].mean += deviation / steps_;
    positions_[i].squares += deviation * (delta[i] - positions_[i].mean);
  }
  if (steps_ == window_) close_window();
}

void DriftMeter::close_window() {
  for (Position& position : positions_) {
    const double variance = position.squares / (window_ - 1);
    if (std::isfinite(variance)) {
      step_variance_.add(variance);
      step_mean_square_.add(position.mean * position.mean - variance / window_);
    }
    position = {};
  }
  ++windows_;
  steps_ = 0;
}

void DriftMeter::add_gap(double square) {
  if (std::isfinite(square)) gap_.add(square);
}

DriftMeasurement DriftMeter::result() const {
  return {.pair = pair_.value(),
          .owner = owner_.value(),
          .step_variance = step_variance_.value(),
          // The correction may exceed the square by chance; a mean square is not negative.
          .step_mean_square = std::max(0.0, step_mean_square_.value()),
          .gap = gap_.value(),
          .samples = samples_,
          .windows = windows_,
          .gaps = gap_.count};
}

}  // namespace leeway::estimate
