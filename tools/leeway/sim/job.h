// State of a command once nothing more can be wrong with its arguments.
#pragma once

#include <optional>
#include <string>

#include "sim/output_folder.h"
#include "sim/packet_trace.h"

namespace leeway::tools::simulation {

struct Job {
  Arguments arguments;
  Plan plan;
  std::string text;                    // scenario.txtpb
  std::optional<OutputFolder> folder;  // without one, table only
  PacketTrace trace;
};

}  // namespace leeway::tools::simulation
