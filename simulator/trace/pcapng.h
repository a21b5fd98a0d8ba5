// A packet trace as pcapng (draft-ietf-opsawg-pcapng), which Wireshark and tshark read.
//
// The file has three interfaces, "sent", "delivered" and "lost", and times to the nanosecond.
// Packets get made-up IPv4 and UDP headers: rank r is 10.0.(r / 256).(r mod 256), ECN as in the
// trace, port 18520 for Leeway and 9 (discard) for the traffic of others. Lost, marked and
// otherwise unusual packets have a comment. Bytes of a datagram that the trace did not keep count
// as not captured.
#pragma once

#include <cstdint>
#include <string>

#include "leeway/status.h"
#include "trace/packet_filter.h"

namespace leeway::sim::trace {

// Returns how many packets were written.
Result<std::uint64_t> write_pcapng(const std::string& trace_path, const std::string& out_path,
                                   const PacketFilter& filter);

}  // namespace leeway::sim::trace
