// Properties of one link, ready for the state machines of link/.
#pragma once

#include <cstdint>
#include <vector>

#include "link/delay_model.h"
#include "link/loss_options.h"
#include "link/queue_options.h"

namespace leeway::sim {

// All members are optional: a link without any delivers at once.
struct LinkProperties {
  bool limited = false;  // has a rate, and therefore a queue
  QueueOptions queue;
  std::vector<LossOptions> losses;   // lost if any of them says so
  std::vector<DelayOptions> delays;  // added up; the base delay of a region is one of them
  double duplicate = 0;
  double reorder = 0;
  std::int64_t reorder_by_ns = 0;
  double corrupt = 0;
  // Links with the same number here ask one and the same loss model, in the order of sending.
  // kOwnFate stands for one of its own.
  static constexpr std::uint32_t kOwnFate = UINT32_MAX;
  std::uint32_t fate = kOwnFate;
};

// Returns a packet's typical delay, queues apart: fixed delays, the middle of uniform ones, the
// mean of netem's shapes, the median of tables, the mean of traces; in whole ns, cut off.
std::int64_t typical_delay_ns(const LinkProperties& properties);

// Returns the line's rate in the long run, or 0 if it is unlimited.
std::uint64_t line_rate_bps(const LinkProperties& properties);

}  // namespace leeway::sim
