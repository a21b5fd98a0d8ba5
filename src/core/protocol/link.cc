#include "protocol/link.h"

namespace leeway::protocol {

void ArrivalGap::on_arrival(Instant now) {
  if (last_.ns != 0) {
    const std::int64_t gap = now.ns - last_.ns;
    mean_ns_ += (gap - mean_ns_) / 16;
  }
  last_ = now;
}

bool Link::on_report(Instant now, const PathReport& report) {
  const std::uint32_t in_flight = path_->in_flight();
  if (!path_->on_report(now, report)) return false;
  answered |= report.largest_sequence != 0;
  if (path_->in_flight() == in_flight) return true;  // the report is late or has nothing new
  // While there is no credit, probe_tries stays, so that the pauses between probes go on growing.
  // If a report reset it, each answer to a probe would soon cause the next probe.
  if (path_->credit() > 0) probe_tries = 0;
  probe_at = Instant::infinite_future();
  return true;
}

void Link::on_arrival(Instant now, std::uint32_t sequence, std::size_t bytes) {
  path_->on_arrival(now, sequence, bytes);
  if (largest_seen_ == 0 || after(sequence, largest_seen_)) {
    largest_seen_ = sequence;
    latest_at_ = now;
  }
  gap.on_arrival(now);
}

void Link::on_group_arrival(Instant now, std::uint32_t sequence) {
  group.on_arrival(sequence);
  latest_at_ = now;
  gap.on_arrival(now);
}

}  // namespace leeway::protocol
