#include "collective/request.h"

#include <algorithm>
#include <numeric>

#include "collective/message_group.h"

namespace leeway::collective {
namespace {

std::uint64_t packets_of(const ContributorStats& stats) {
  return std::accumulate(stats.histogram.begin(), stats.histogram.end(), std::uint64_t{0});
}

}  // namespace

void Request::finish(const Status& outcome, Instant now) {
  status = outcome;
  done = true;
  if (finished != nullptr) finished->push_back(this);
  if (member_of != nullptr) member_of->on_done(*this, now);
}

void add_counts(const PeerReport& part, PeerReport& whole) {
  whole.expected += part.expected;
  whole.arrived += part.arrived;
  whole.repaired += part.repaired;
  whole.duplicate += part.duplicate;
  whole.late += part.late;
  whole.sent += part.sent;
}

void add_contributors(const ContributorStats& part, ContributorStats& whole) {
  const auto before = static_cast<double>(packets_of(whole));
  const auto further = static_cast<double>(packets_of(part));
  if (before == 0) {
    whole = part;
    return;
  }
  if (further == 0) return;
  whole.mean = (before * whole.mean + further * part.mean) / (before + further);
  whole.min = std::min(whole.min, part.min);
  for (std::size_t k = 0; k < part.histogram.size(); ++k) whole.histogram[k] += part.histogram[k];
}

void set_losses(CollectiveReport& report) {
  PeerReport all;
  for (const PeerReport& row : report.peers) add_counts(row, all);
  if (all.expected == 0) return;
  const auto missing = [&](std::uint64_t here) {
    return 1.0 - static_cast<double>(here) / static_cast<double>(all.expected);
  };
  report.loss = missing(all.arrived);
  report.loss_first_pass = missing(all.arrived - all.repaired);
}

}  // namespace leeway::collective
