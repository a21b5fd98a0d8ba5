// --shard, as `leeway sim` and `leeway sim swarm` take it.
#pragma once

#include <string>

#include "leeway/status.h"

namespace CLI {
class App;
}

namespace leeway::tools::simulation {

void add_shard_option(CLI::App& command, std::string& shard);

// Where no shard was asked for and a launcher started several processes, this one's: each of them
// doing all would be N times the same. Says so on stderr.
Status default_to_launcher(std::string& shard);

}  // namespace leeway::tools::simulation
