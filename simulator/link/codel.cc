#include "link/codel.h"

#include <algorithm>
#include <utility>

#include "engine/fixed_point.h"

namespace leeway::sim {
namespace {

// A queue that begins to drop again within this many intervals starts at its former drop rate.
constexpr std::int64_t kRecentIntervals = 16;

}  // namespace

Codel::Codel(std::int64_t target_ns, std::int64_t interval_ns, std::int64_t packet_time_ns)
    : target_ns_(std::max(target_ns, packet_time_ns)), interval_ns_(interval_ns) {}

bool Codel::hit(std::int64_t now_ns, std::int64_t sojourn_ns, bool mark) {
  const bool after_drop = std::exchange(dropped_, false);
  if (!ok_to_drop(now_ns, sojourn_ns)) {
    dropping_ = false;
    return false;
  }
  if (!dropping_) {
    start_dropping(now_ns);
    return true;
  }
  if (after_drop) drop_next_ns_ = control_law(drop_next_ns_);
  if (now_ns < drop_next_ns_) return false;
  ++count_;
  if (mark) {
    drop_next_ns_ = control_law(drop_next_ns_);
  } else {
    dropped_ = true;
  }
  return true;
}

bool Codel::ok_to_drop(std::int64_t now_ns, std::int64_t sojourn_ns) {
  if (sojourn_ns < target_ns_) {
    above_ = false;
    return false;
  }
  if (above_) return now_ns >= first_above_ns_;
  above_ = true;
  first_above_ns_ = now_ns + interval_ns_;
  return false;
}

void Codel::start_dropping(std::int64_t now_ns) {
  dropping_ = true;
  const std::uint64_t delta = count_ - last_count_;
  const bool recent = now_ns - drop_next_ns_ < kRecentIntervals * interval_ns_;
  count_ = recent && delta > 1 ? delta : 1;
  drop_next_ns_ = control_law(now_ns);
  last_count_ = count_;
}

// Returns from + interval / sqrt(count), rounded down.
std::int64_t Codel::control_law(std::int64_t from_ns) const {
  const auto interval = static_cast<std::uint64_t>(interval_ns_);
  return from_ns + static_cast<std::int64_t>(floor_sqrt(interval * interval / count_));
}

}  // namespace leeway::sim
