// The properties of one link, as the models of link/ take them.
#pragma once

#include <cstdint>
#include <vector>

#include "link/delay_model.h"
#include "link/loss_options.h"
#include "link/queue_options.h"

namespace leeway::sim {

// All members are optional. A link on which none is set delivers packets at once.
struct LinkProperties {
  bool limited = false;  // has a rate, and therefore a queue
  QueueOptions queue;
  std::vector<LossOptions> losses;   // lost if any of them says so
  std::vector<DelayOptions> delays;  // added up; the base delay of a region is one of them
  double duplicate = 0;
  double reorder = 0;
  std::int64_t reorder_by_ns = 0;
  double corrupt = 0;
  // Links with the same number share one loss model, which decides about all their packets in the
  // order of sending. With kOwnFate the link has a loss model of its own.
  static constexpr std::uint32_t kOwnFate = UINT32_MAX;
  std::uint32_t fate = kOwnFate;
};

// Returns a packet's typical delay without queues, in whole ns, rounded down. This is the sum over
// the link's delays. Each adds its fixed value, the middle of a uniform range, the mean of a netem
// shape or a trace, or the median of a table.
std::int64_t typical_delay_ns(const LinkProperties& properties);

// Returns the line's mean rate, or 0 if it is unlimited.
std::uint64_t line_rate_bps(const LinkProperties& properties);

}  // namespace leeway::sim
