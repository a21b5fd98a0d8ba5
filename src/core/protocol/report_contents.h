// Makes the contents of a report to one peer (WIRE 3).
#pragma once

#include "protocol/failures.h"
#include "protocol/link.h"
#include "protocol/round_table.h"
#include "wire/packet.h"

namespace leeway::protocol {

// Returns a report with the path's counts, and nothing else.
wire::Report path_counts(const Path& path);
// Returns what a peer's report says of the path.
PathReport path_report(const wire::Report& report);
struct ReportContents {
  wire::Report report;
  PeerMessages::Listed listed;
};
// Returns a report that fits into `room` bytes, which are limits::kDatagramBytesMin or more.
ReportContents report_contents(Instant now, Rank peer, const Link& link, const RoundTable& rounds,
                               const Failures& failures, std::size_t room);

}  // namespace leeway::protocol
