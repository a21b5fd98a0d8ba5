#include "run/fault_schedule.h"

#include <cmath>

#include "network/network.h"
#include "scenario/rank_set.h"

namespace leeway::sim {
namespace {

std::int64_t nanoseconds(double ms) {
  return std::llround(ms * 1e6);
}

void add_directions(const std::vector<std::uint32_t>& from, const std::vector<std::uint32_t>& to,
                    Fault& fault) {
  for (const std::uint32_t a : from) {
    for (const std::uint32_t b : to) {
      if (a != b) fault.directions.emplace_back(a, b);
    }
  }
}

Result<Fault> partition_of(const scenario::Scenario& scenario,
                           const scenario::Partition& partition) {
  Fault fault{.kind = Fault::Kind::partition,
              .from_round = partition.from_round(),
              .after_ns = nanoseconds(partition.after_ms()),
              .for_ns = partition.has_for_ms() ? nanoseconds(partition.for_ms()) : -1};
  const bool both = partition.has_between();
  const auto from = scenario::ranks_of(scenario, both ? partition.between() : partition.from());
  if (!from.ok()) return from.status();
  const auto to = scenario::ranks_of(scenario, both ? partition.and_() : partition.to());
  if (!to.ok()) return to.status();
  add_directions(*from, *to, fault);
  if (both) add_directions(*to, *from, fault);
  return fault;
}

}  // namespace

Result<FaultSchedule> FaultSchedule::make(const scenario::Scenario& scenario) {
  FaultSchedule schedule;
  for (const auto& pause : scenario.pause()) {
    schedule.faults_.push_back({.kind = Fault::Kind::pause,
                                .rank = pause.rank(),
                                .from_round = pause.from_round(),
                                .after_ns = nanoseconds(pause.after_ms()),
                                .for_ns = nanoseconds(pause.for_ms())});
  }
  for (const auto& crash : scenario.crash()) {
    schedule.faults_.push_back({.kind = Fault::Kind::crash,
                                .rank = crash.rank(),
                                .from_round = crash.from_round(),
                                .after_ns = nanoseconds(crash.after_ms())});
  }
  for (const auto& change : scenario.address_change()) {
    schedule.faults_.push_back(
        {.kind = change.port_only() ? Fault::Kind::rebind : Fault::Kind::move,
         .rank = change.rank(),
         .from_round = change.from_round(),
         .after_ns = nanoseconds(change.after_ms())});
  }
  for (const auto& partition : scenario.partition()) {
    auto fault = partition_of(scenario, partition);
    if (!fault.ok()) return fault.status();
    schedule.faults_.push_back(std::move(*fault));
  }
  return schedule;
}

void FaultSchedule::on_submit(Instant now, std::uint32_t rank, std::uint32_t round,
                              EventQueue& queue) {
  constexpr auto kKind = static_cast<std::uint32_t>(EventKind::fault);
  for (std::uint32_t number = 0; number < faults_.size(); ++number) {
    Fault& fault = faults_[number];
    if (fault.begun || fault.rank != rank || round < fault.from_round) continue;
    fault.begun = true;
    const Instant begin = now + Duration(fault.after_ns);
    queue.push(begin, number, kKind, 1);
    if (fault.for_ns >= 0) queue.push(begin + Duration(fault.for_ns), number, kKind, 0);
  }
}

}  // namespace leeway::sim
