#include "run/fault_schedule.h"

#include "network/network.h"
#include "scenario/rank_set.h"
#include "scenario/units.h"

namespace leeway::sim {
namespace {

void add_directions(const std::vector<std::uint32_t>& from, const std::vector<std::uint32_t>& to,
                    Fault& fault) {
  for (const std::uint32_t a : from) {
    for (const std::uint32_t b : to) {
      if (a != b) fault.directions.emplace_back(a, b);
    }
  }
}

// Makes the fault of a partition or a narrow path.
template <typename Rule>
Result<Fault> fault_between(const scenario::Scenario& scenario, Fault::Kind kind,
                            const Rule& rule) {
  Fault fault{.kind = kind,
              .from_round = rule.from_round(),
              .after_ns = ns_of_ms(rule.after_ms()),
              .for_ns = rule.has_for_ms() ? ns_of_ms(rule.for_ms()) : -1};
  const bool both = rule.has_between();
  const auto from = scenario::ranks_of(scenario, both ? rule.between() : rule.from());
  if (!from.ok()) return from.status();
  const auto to = scenario::ranks_of(scenario, both ? rule.and_() : rule.to());
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
                                .after_ns = ns_of_ms(pause.after_ms()),
                                .for_ns = ns_of_ms(pause.for_ms())});
  }
  for (const auto& crash : scenario.crash()) {
    schedule.faults_.push_back({.kind = Fault::Kind::crash,
                                .rank = crash.rank(),
                                .from_round = crash.from_round(),
                                .after_ns = ns_of_ms(crash.after_ms())});
  }
  for (const auto& change : scenario.address_change()) {
    schedule.faults_.push_back(
        {.kind = change.port_only() ? Fault::Kind::rebind : Fault::Kind::move,
         .rank = change.rank(),
         .from_round = change.from_round(),
         .after_ns = ns_of_ms(change.after_ms())});
  }
  for (const auto& partition : scenario.partition()) {
    auto fault = fault_between(scenario, Fault::Kind::partition, partition);
    if (!fault.ok()) return fault.status();
    schedule.faults_.push_back(std::move(*fault));
  }
  for (const auto& narrow : scenario.narrow()) {
    auto fault = fault_between(scenario, Fault::Kind::narrow, narrow);
    if (!fault.ok()) return fault.status();
    fault->bytes = narrow.bytes();
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
