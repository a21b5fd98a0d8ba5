// leeway keygen: makes a new secret for a job, as a line of a secret file.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "commands.h"
#include "exit_code.h"
#include "keys/secret.h"
#include "standard_output.h"

namespace leeway::tools {
namespace {

// Prints a secret. With `leeway keygen > cluster.key` the shell makes a file that everybody may
// read, and Leeway would refuse such a file. So this function lets only the owner read it.
int print_secret() {
  if (const Status status = keys::check_random(); !status.ok()) {
    std::fprintf(stderr, "error: %s\n", status.c_str());
    return kExitUsage;
  }
  struct stat facts {};
  const bool is_file = ::fstat(STDOUT_FILENO, &facts) == 0 && S_ISREG(facts.st_mode);
  if (is_file && ::fchmod(STDOUT_FILENO, S_IRUSR | S_IWUSR) != 0) {
    std::fprintf(stderr, "error: others may read this file: %s\n", std::strerror(errno));
    return kExitUsage;
  }
  print(keys::new_secret_line());
  return 0;
}

}  // namespace

void register_keygen(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "keygen", "Print a new secret for LEEWAY_SECRET_FILE: leeway keygen > cluster.key");
  command->footer(
      "Every host of a job needs the same file, readable by its owner alone. Its first line is "
      "the\n"
      "secret; older ones on the lines after it are still accepted.");
  command->callback([&exit_code] { exit_code = print_secret(); });
}

}  // namespace leeway::tools
