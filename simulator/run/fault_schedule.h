// The times at which faults of a scenario begin and end: pauses, crashes, partitions, narrow paths
// and changes of address.
//
// A fault begins a given time after a rank has submitted a given round. The events of a fault carry
// only its number. The run applies the fault to endpoints and network.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/event_queue.h"
#include "leeway/status.h"
#include "scenario.pb.h"

namespace leeway::sim {

struct Fault {
  enum class Kind : std::uint8_t { pause, crash, partition, move, rebind, narrow };
  Kind kind = Kind::pause;
  std::uint32_t rank =
      // the rank whose submission starts the fault: the rank that it hits, or rank 0 for a
      // partition or narrow path
      0;
  std::uint32_t from_round = 0;
  std::int64_t after_ns = 0;
  std::int64_t for_ns = -1;  // negative: lasts until the end
  // For partition and narrow: the directions that are hit, as pairs (from rank, to rank).
  std::vector<std::pair<std::uint32_t, std::uint32_t>> directions;
  std::uint32_t bytes = 0;  // narrow
  bool begun = false;
};

class FaultSchedule {
 public:
  // The scenario is valid.
  static Result<FaultSchedule> make(const scenario::Scenario& scenario);

  // For each fault that this submission starts, pushes one event of EventKind::fault for its begin
  // and one for its end. The event's target is the fault's number; its argument is 1 for the begin
  // and 0 for the end.
  void on_submit(Instant now, std::uint32_t rank, std::uint32_t round, EventQueue& queue);

  const Fault& fault(std::uint32_t number) const { return faults_[number]; }

 private:
  std::vector<Fault> faults_;
};

}  // namespace leeway::sim
