// The `leeway` command: picks the subcommand and returns its exit code. Each subcommand has a file
// of its own.

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>

#include "commands.h"
#include "exit_code.h"
#include "interrupt.h"
#include "leeway/version.h"
#include "standard_output.h"

namespace leeway::tools {
namespace {

// Makes all options that take a real number refuse "nan" and "inf", which pass CLI::Range.
void refuse_non_finite(CLI::App& command) {
  for (CLI::Option* const option : command.get_options()) {
    if (!option->get_type_name().starts_with("FLOAT")) continue;
    option->check([](const std::string& text) {
      double number = 0;
      const bool is_wrong = CLI::detail::lexical_cast(text, number) && !std::isfinite(number);
      return is_wrong ? text + " is not a finite number" : std::string();
    });
  }
  for (CLI::App* const sub : command.get_subcommands([](CLI::App*) { return true; }))
    refuse_non_finite(*sub);
}

// Prints what CLI11 answers to the command line: --help, --version or an error.
int answer(const CLI::App& app, const CLI::ParseError& reason) {
  std::ostringstream out;
  const int code = app.exit(reason, out);
  print(out.str());
  return code == 0 ? 0 : kExitUsage;
}

int run(int argc, char** argv) {
  CLI::App app("Collective communication that stays fast and right on networks that lose packets",
               "leeway");
  app.set_version_flag("--version", "leeway " LEEWAY_VERSION_STRING);
  app.require_subcommand(1);
  int exit_code = 0;
  register_train(app, exit_code);
  register_perf(app, exit_code);
  register_codec(app, exit_code);
  register_sim(app, exit_code);
  register_doctor(app, exit_code);
  register_top(app, exit_code);
  register_nccl(app, exit_code);
  register_keygen(app, exit_code);
  refuse_non_finite(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& refusal) {  // CLI11 does not say that a word is no command
    const auto all = app.get_subcommands([](const CLI::App*) { return true; });
    const bool word = argc > 1 && argv[1][0] != '-' &&
                      std::none_of(all.begin(), all.end(), [&](const CLI::App* command) {
                        return command->get_name() == argv[1];
                      });
    if (!word) return answer(app, refusal);
    std::fprintf(stderr, "error: there is no command \"%.60s\"; leeway --help lists them\n",
                 argv[1]);
    return kExitUsage;
  } catch (const CLI::ParseError& refusal) {  // --help and --version come this way too, as code 0
    return answer(app, refusal);
  }
  return exit_code;
}

}  // namespace
}  // namespace leeway::tools

int main(int argc, char** argv) {
  leeway::tools::restore_hangup();
  // Only CLI11 and lack of memory throw exceptions here; the library throws none.
  try {
    return leeway::tools::finish_output(leeway::tools::run(argc, argv));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
}
