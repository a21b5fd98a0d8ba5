// The laboratory's final report: what happened to the packets, and how precisely it kept time.
#pragma once

#include <string>
#include <vector>

#include "precision.h"
#include "wan.h"

namespace leeway::lab {

struct LabReport {
  WanCounters counters;
  std::vector<LinkReport> links;
  std::uint64_t under_way = 0;  // packets still in the network at the end
  Precision precision;
};

// Returns the report for people: a table of links, then the laboratory's precision. If something
// makes the figures worthless, the text says so.
std::string report_text(const LabReport& report);

// Returns the report for programs; README.md lists its keys.
std::string report_json(const LabReport& report);

}  // namespace leeway::lab
