// Describes a packet of a trace in one line.
#pragma once

#include <string>

#include "trace.pb.h"

namespace leeway::sim::trace {

// Returns a line such as "    12.345678 ms  lost         3>7    1500 B  on eu>us  data round 3
// reduce packet 17 of 64 marked".
std::string packet_text(const Packet& packet, const std::string& link_name);

// "queue full", "delivered"
const char* step_text(Step step);

}  // namespace leeway::sim::trace
