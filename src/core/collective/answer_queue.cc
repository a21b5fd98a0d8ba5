#include "collective/answer_queue.h"

#include "base/contracts.h"

namespace leeway::collective {
namespace {

// The path's counts, to a peer that has said good-bye.
wire::Report last_report(protocol::Path& path) {
  wire::Report report;
  report.largest_sequence = path.largest_seen();
  report.received = path.received();
  report.received_bytes = path.received_bytes();
  report.arrived_us = wire::arrived_us(path.largest_arrived_at());
  report.ect = path.ect();
  report.ce = path.ce();
  report.grant = path.grant();
  report.host_drops = path.host_drops();
  report.heard_goodbye = true;
  path.on_reported();
  return report;
}

}  // namespace

bool AnswerQueue::write(Instant now, Paths& paths, protocol::TrainBuffer& out) {
  LEEWAY_ASSERT(!empty() && paths.has(waiting_.back().slot));
  auto [prefix, slot, size] = waiting_.back();
  waiting_.pop_back();
  protocol::Path& path = paths[slot];
  const bool numbered =
      prefix.type != wire::PacketType::alive && prefix.type != wire::PacketType::size;
  if (numbered) prefix.sequence = path.take_sequence(now);
  out.start(slot);
  const MutableByteSpan scratch =
      out.scratch(wire::kReportFixedBytes + wire::kReportMarksBytes + wire::kReportHostBytes);
  if (prefix.type == wire::PacketType::size) {
    out.append(wire::encode_size(prefix, size, scratch.first(wire::kSizeBytes)), {});
  } else if (prefix.type == wire::PacketType::report) {
    out.append(wire::encode_report(prefix, last_report(path), scratch), {});
  } else {
    out.append(wire::encode_bare(prefix, scratch), {});
  }
  return numbered;
}

}  // namespace leeway::collective
