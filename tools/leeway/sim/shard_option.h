// The option --shard of `leeway sim` and `leeway sim swarm`.
#pragma once

#include <string>

#include "leeway/status.h"

namespace CLI {
class App;
}

namespace leeway::tools::simulation {

void add_shard_option(CLI::App& command, std::string& shard);

// If no shard was asked for and a launcher started several processes, chooses this process's shard:
// otherwise each of them would do the same runs. Prints that on stderr.
Status default_to_launcher(std::string& shard);

}  // namespace leeway::tools::simulation
