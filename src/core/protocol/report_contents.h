// Writes a report to one peer (WIRE 3), within `room` bytes, which are limits::kDatagramBytesMin or
// more.
#pragma once

#include "protocol/failures.h"
#include "protocol/link.h"
#include "protocol/round_table.h"
#include "wire/packet.h"

namespace leeway::protocol {

wire::Report report_contents(Instant now, Rank peer, const Link& link, const RoundTable& rounds,
                             const Failures& failures, std::size_t room);

}  // namespace leeway::protocol
