// What samples of one round trip show, for Wan and its parts.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"
#include "congestion/controller.h"

namespace leeway::congestion {

// Datagrams, and how many of them were lost.
struct LossTally {
  double covered = 0;
  double lost = 0;

  LossTally& operator+=(const LossTally& more) {
    covered += more.covered;
    lost += more.lost;
    return *this;
  }
};

struct WanRound {
  LossTally loss;
  double rate = 0;  // the largest that was measured, bits per second
  Duration queue_least{std::chrono::hours(1)};
  Duration queue_most{0};
  bool used = false;    // the controller limited the sending rate
  bool marked = false;  // a queue marked some datagrams

  // Adds a sample. `with_losses`: false if the sample's losses and marks are of an earlier time,
  // and must not count.
  void add(const Sample& sample, bool with_losses) {
    if (sample.interval.count() > 0) {
      rate = std::max(rate, 8e9 * static_cast<double>(sample.delivered_bytes) /
                                static_cast<double>(sample.interval.count()));
    }
    if (with_losses) {
      loss += {static_cast<double>(sample.covered), static_cast<double>(sample.lost)};
      marked |= sample.marked > 0;
    }
    used |= !sample.limited;
    queue_least = std::min(queue_least, sample.queueing);
    queue_most = std::max(queue_most, sample.queueing);
  }
};

}  // namespace leeway::congestion
