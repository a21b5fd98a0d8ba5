// Finds where two runs diverge: the first packet that differs between their traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leeway/status.h"

namespace leeway::sim::trace {

struct TraceDifference {
  std::uint64_t index = 0;  // index of the packet, from 0
  // fields that differ: "time_ns, link"; empty if one trace has ended
  std::string fields;
  // Lines of packet_text().
  std::vector<std::string> before;  // lines that are the same in both
  std::vector<std::string> first;   // lines from the difference on; none if the trace ends there
  std::vector<std::string> second;
};

struct TraceComparison {
  std::uint64_t packets = 0;       // packets that are the same
  std::vector<std::string> notes;  // other seed, other scenario, ...
  std::optional<TraceDifference> difference;
};

// Gives up to `context` lines before and after the difference. Links are compared by name.
Result<TraceComparison> compare_traces(const std::string& first, const std::string& second,
                                       std::size_t context);

}  // namespace leeway::sim::trace
