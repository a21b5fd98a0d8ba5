// State of a command whose arguments have been checked.
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
  std::optional<OutputFolder> folder;  // if empty, only the table is printed
  PacketTrace trace;
};

}  // namespace leeway::tools::simulation
