#include "collective/answer_queue.h"

#include "base/contracts.h"
#include "protocol/report_contents.h"

namespace leeway::collective {
namespace {

// Returns a report of the path's counts for a peer that has said good-bye.
wire::Report last_report(protocol::Path& path) {
  wire::Report report = protocol::path_counts(path);
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
