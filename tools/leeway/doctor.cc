// leeway doctor: what this machine and this environment offer Leeway, and the command that mends
// what they lack.

#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "commands.h"
#include "doctor/probes.h"
#include "doctor/report.h"
#include "exit_code.h"
#include "leeway/version.h"
#include "rendezvous/environment.h"

namespace leeway::tools {
namespace {

bool write_json(const std::string& path, const std::string& json) {
  std::ofstream file(path);
  file << json;
  file.close();
  return file.good();
}

int examine(const std::string& json_path) {
  doctor::Findings findings;
  doctor::probe_machine(findings);
  doctor::probe_network(findings);
  doctor::probe_transports(findings, rendezvous::process_environment());
  doctor::probe_environment(findings, rendezvous::process_environment());

  if (json_path == "-") {
    std::fputs(doctor::to_json(findings).c_str(), stdout);
    return doctor::exit_code_of(findings);
  }
  std::printf("leeway %s doctor\n\n%s", LEEWAY_VERSION_STRING,
              doctor::to_text(findings, ::isatty(STDOUT_FILENO) != 0).c_str());
  if (!json_path.empty() && !write_json(json_path, doctor::to_json(findings))) {
    std::fprintf(stderr, "error: cannot write %s\n", json_path.c_str());
    return kExitUsage;
  }
  return doctor::exit_code_of(findings);
}

}  // namespace

void register_doctor(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("doctor", "Say what this machine lacks, and the command that mends it");
  const auto json_path = std::make_shared<std::string>();
  command->add_option("--json", *json_path,
                      "Also write the findings to this file (- for standard output only)");
  command->callback([json_path, &exit_code] { exit_code = examine(*json_path); });
}

}  // namespace leeway::tools
