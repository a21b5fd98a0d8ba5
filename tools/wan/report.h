// The laboratory's final report: the fate of the packets, and how well it kept time.
#pragma once

#include <string>
#include <vector>

#include "precision.h"
#include "wan.h"

namespace leeway::lab {

struct LabReport {
  WanCounters counters;
  std::vector<LinkReport> links;
  std::uint64_t under_way = 0;  // packets, at the end
  Precision precision;
};

// Report for people: a table of links, then the laboratory's own precision. If anything makes the
// figures worthless, the text names it.
std::string report_text(const LabReport& report);

// Report for programs; README.md lists the keys.
std::string report_json(const LabReport& report);

}  // namespace leeway::lab
