// `leeway sim` in a build without the simulator: says how to get it.

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>

#include "commands.h"
#include "exit_code.h"

namespace leeway::tools {

void register_sim(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("sim", "Run a scenario in virtual time (not in this build)");
  command->allow_extras();
  command->callback([&exit_code] {
    std::fputs(
        "error: this leeway was built without its simulator; configure and build again with "
        "-DLEEWAY_BUILD_SIMULATOR=ON\n",
        stderr);
    exit_code = kExitUsage;
  });
}

}  // namespace leeway::tools
