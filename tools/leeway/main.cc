// The `leeway` command: picks the subcommand and returns its exit code. Each subcommand has a file
// of its own.

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>

#include "commands.h"
#include "exit_code.h"
#include "leeway/version.h"

int main(int argc, char** argv) {
  // Only CLI11 and lack of memory throw exceptions here; the library throws none.
  try {
    CLI::App app("Collective communication that stays fast and right on networks that lose packets",
                 "leeway");
    app.set_version_flag("--version", "leeway " LEEWAY_VERSION_STRING);
    app.require_subcommand(1);
    int exit_code = 0;
    leeway::tools::register_train(app, exit_code);
    leeway::tools::register_perf(app, exit_code);
    leeway::tools::register_codec(app, exit_code);
    leeway::tools::register_sim(app, exit_code);
    leeway::tools::register_doctor(app, exit_code);
    leeway::tools::register_top(app, exit_code);
    leeway::tools::register_nccl(app, exit_code);
    leeway::tools::register_keygen(app, exit_code);
    try {
      app.parse(argc, argv);
    } catch (const CLI::RequiredError& refusal) {  // CLI11 does not say that a word is no command
      const auto all = app.get_subcommands([](const CLI::App*) { return true; });
      const bool word = argc > 1 && argv[1][0] != '-' &&
                        std::none_of(all.begin(), all.end(), [&](const CLI::App* command) {
                          return command->get_name() == argv[1];
                        });
      if (!word) return app.exit(refusal) == 0 ? 0 : leeway::tools::kExitUsage;
      std::fprintf(stderr, "error: there is no command \"%.60s\"; leeway --help lists them\n",
                   argv[1]);
      return leeway::tools::kExitUsage;
    } catch (const CLI::ParseError& refusal) {  // --help and --version come this way too, as code 0
      return app.exit(refusal) == 0 ? 0 : leeway::tools::kExitUsage;
    }
    return exit_code;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
}
