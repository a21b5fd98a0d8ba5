#include "driving/channel.h"

namespace leeway::driving {

void Channel::add_counters(const std::string& prefix, Counters& rows) {
  const std::size_t first = rows.size();
  if (forked()) return;
  Driver::Session session(*driver_);
  const protocol::EndpointCounters& core = endpoint().counters();
  const TransportCounters wire = driver_->transport_->counters();
  const Counters own = {
      {"datagrams_sent", wire.datagrams_sent},
      {"datagrams_received", wire.datagrams_received},
      {"bytes_sent", wire.bytes_sent},
      {"bytes_received", wire.bytes_received},
      {"send_calls", wire.send_calls},
      {"receive_calls", wire.receive_calls},
      {"refused_stranger", wire.from_strangers},
      {"refused_truncated_by_system", wire.oversized},
      {"send_errors", wire.send_errors},
      {"datagrams_copied", wire.datagrams_copied},
      {"kernel_drops", wire.kernel_drops},
      {"refused_junk", wire.junk},
      {"data_sent", core.data_sent},
      {"group_sent", core.group_sent},
      {"group_left", core.group_left},
      {"data_received", core.data_received},
      {"repairs_sent", core.repairs_sent},
      {"parity_sent", core.parity_sent},
      {"parity_received", core.parity_received},
      {"parity_unused", core.parity_unused},
      {"recovered", core.recovered},
      {"repair_requests", core.repair_requests},
      {"requests_sent", core.requests_sent},
      {"ends_sent", core.ends_sent},
      {"reports_sent", core.reports_sent},
      {"probes_sent", core.probes_sent},
      {"duplicate", core.duplicate},
      {"late", core.late},
      {"closed_round", core.closed_round},
      {"future_round", core.future_round},
      {"early_kept", core.early_kept},
      {"early_dropped", core.early_dropped},
      {"refused_plan", core.refused_plan},
      {"refused_report", core.refused_report},
      {"refused_progress", core.refused_progress},
      {"rounds_opened", core.rounds_opened},
      {"rounds_failed", core.rounds_failed},
      {"deadline_cuts", core.deadline_cuts},
      {"peers_given_up", core.peers_given_up},
  };
  rows.insert(rows.end(), own.begin(), own.end());
  for (int i = 1; i < wire::kRefusals; ++i)
    rows.emplace_back(std::string("refused_") + wire::kRefusalNames[i],
                      core.refused[i] + session.node().refused()[i]);
  if (driver_->layers_.sealed != nullptr) {
    for (auto& row : driver_->layers_.sealed->named_seal_counters()) rows.push_back(std::move(row));
  }
  if (driver_->layers_.mixed != nullptr) {
    for (auto& row : driver_->layers_.mixed->named_counters()) rows.push_back(std::move(row));
  }
  if (driver_->layers_.faults != nullptr) {
    for (auto& row : driver_->layers_.faults->named_fault_counters())
      rows.push_back(std::move(row));
  }
  for (std::size_t i = first; i < rows.size(); ++i) rows[i].first = prefix + rows[i].first;
}

}  // namespace leeway::driving
