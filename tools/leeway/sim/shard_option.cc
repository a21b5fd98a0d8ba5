#include "sim/shard_option.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>

#include "sim/shard.h"

namespace leeway::tools::simulation {

void add_shard_option(CLI::App& command, std::string& shard) {
  command.add_option("--shard", shard,
                     "I/N: part I of N, for one of N machines; under a launcher its rank says "
                     "which. `leeway sim merge` joins the parts");
}

Status default_to_launcher(std::string& shard) {
  if (!shard.empty()) return {};
  const Result<std::string> launcher = launcher_shard(rendezvous::process_environment());
  if (!launcher.ok()) return launcher.status();
  shard = *launcher;
  if (!shard.empty()) std::fprintf(stderr, "--shard %s, by the launcher\n", shard.c_str());
  return {};
}

}  // namespace leeway::tools::simulation
