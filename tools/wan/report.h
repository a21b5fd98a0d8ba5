// What the laboratory says at its end: what became of the packets, and how well it kept time.
#pragma once

#include <string>
#include <vector>

#include "precision.h"
#include "wan.h"

namespace leeway::lab {

struct LabReport {
  WanCounters counters;
  std::vector<LinkReport> links;
  std::uint64_t under_way = 0;  // at the end
  Precision precision;
};

// For people: a table of links, then the laboratory's own precision. Names what makes the figures
// worthless, if anything.
std::string report_text(const LabReport& report);

// For programs; README.md lists the keys.
std::string report_json(const LabReport& report);

}  // namespace leeway::lab
