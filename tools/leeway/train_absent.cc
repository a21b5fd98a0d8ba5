// `leeway train` in a build without libtorch: says how to get it.

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>

#include "commands.h"
#include "exit_code.h"

namespace leeway::tools {

void register_train(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("train", "Train a small language model (not in this build)");
  command->allow_extras();
  command->callback([&exit_code] {
    std::fputs(
        "error: this leeway was built without libtorch, which `leeway train` needs\n"
        "  sudo apt-get install libtorch-dev libopenblas0-pthread bible-kjv\n"
        "then configure and build again with -DLEEWAY_WITH_TORCH=ON\n",
        stderr);
    exit_code = kExitUsage;
  });
}

}  // namespace leeway::tools
