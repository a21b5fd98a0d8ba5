#include "observe/call_book.h"

#include <algorithm>

namespace leeway::observe {

Calls& CallBook::find(const std::string& communicator, const collective::OperationSpec& spec) {
  const Delivery::Kind delivery = spec.options.delivery.kind;
  const auto same = [&](const Calls& calls) {
    return calls.kind == spec.kind && calls.delivery == delivery &&
           calls.communicator == communicator;
  };
  const auto found = std::find_if(calls_.begin(), calls_.end(), same);
  if (found != calls_.end()) return *found;
  calls_.push_back({.communicator = communicator, .kind = spec.kind, .delivery = delivery});
  return calls_.back();
}

void CallBook::add(const std::string& communicator, const collective::Request& request) {
  Calls& calls = find(communicator, request.spec);
  if (!request.status.ok()) {
    ++calls.failed;
    return;
  }
  const CollectiveReport& report = request.report;
  const double seconds = to_seconds(report.times.total);
  const auto* const bucket = std::lower_bound(kCallSeconds.begin(), kCallSeconds.end(), seconds);
  ++calls.buckets[static_cast<std::size_t>(bucket - kCallSeconds.begin())];
  calls.seconds += seconds;
  ++calls.done;
  calls.deadline_cuts += report.deadline_cut ? 1 : 0;
  calls.contributions_missing += report.contributions_missing;
  for (const PeerReport& peer : report.peers) {
    calls.packets_expected += peer.expected;
    calls.packets_missing += peer.expected - std::min(peer.expected, peer.arrived);
  }
  if (report.contributors.histogram.empty()) return;
  calls.reduced = true;
  calls.contributors_mean = report.contributors.mean;
  calls.contributors_min = report.contributors.min;
}

}  // namespace leeway::observe
