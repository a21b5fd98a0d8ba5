// leeway doctor: says what this machine and environment offer Leeway, and which commands repair
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
#include "doctor/nccl_program.h"
#include "doctor/paths.h"
#include "doctor/probes.h"
#include "doctor/reach.h"
#include "doctor/report.h"
#include "exit_code.h"
#include "launch.h"
#include "leeway/communicator.h"
#include "leeway/version.h"
#include "rendezvous/environment.h"
#include "standard_output.h"

namespace leeway::tools {
namespace {

bool write_json(const std::string& path, const std::string& json) {
  std::ofstream file(path);
  file << json;
  file.close();
  return file.good();
}

// Examines the machine, or only `program` if it is given.
int examine(const std::string& program, const std::string& json_path) {
  doctor::Findings findings;
  if (program.empty()) {
    doctor::probe_machine(findings);
    doctor::probe_network(findings);
    doctor::probe_transports(findings, rendezvous::process_environment());
    doctor::probe_environment(findings, rendezvous::process_environment());
  } else {
    doctor::probe_nccl_program(program, findings);
  }

  if (json_path == "-") {
    print(doctor::to_json(findings));
    return doctor::exit_code_of(findings);
  }
  print("leeway " LEEWAY_VERSION_STRING " doctor\n\n" +
        doctor::to_text(findings, ::isatty(STDOUT_FILENO) != 0));
  if (!json_path.empty() && !write_json(json_path, doctor::to_json(findings))) {
    std::fprintf(stderr, "error: cannot write %s\n", json_path.c_str());
    return kExitUsage;
  }
  return doctor::exit_code_of(findings);
}

struct PathsArguments {
  bool wanted = false;
  int ranks = 0;
  std::string json_path;
};

Status show_paths(const doctor::PathsReport& report, const std::string& json_path) {
  if (json_path == "-") {
    print(doctor::to_json(report));
    return Status();
  }
  print(doctor::to_text(report));
  if (json_path.empty() || write_json(json_path, doctor::to_json(report))) return Status();
  return Status::error(StatusCode::kInvalidArgument, "cannot write %s", json_path.c_str());
}

// Time for which ranks send each other probes. It is long enough for several probes, because some
// may be lost.
constexpr std::chrono::milliseconds kListen{1500};
// Time limit of Communicator::create() when paths are broken. All ranks have arrived by then, so
// they only need to find relays.
constexpr Duration kCreateWithin = std::chrono::seconds(4);

// Finds out which ranks reach each other, so that no rank waits for a path that does not exist.
// Rank 0 prints the broken paths.
Status examine_reach(doctor::Gathering& gathering, Options& options) {
  const Status met = gathering.await_all(options.join_timeout);
  if (met.code() == StatusCode::kDeadlineExceeded) return met;
  if (!met.ok()) return Status();  // create() says why
  const auto reach = gathering.measure(options, kListen);
  if (!reach.ok()) return reach.status();
  const std::string broken = doctor::broken_paths(*reach);
  if (broken.empty()) return Status();
  if (options.rank == 0) std::fputs(broken.c_str(), stderr);
  options.join_timeout = std::min(options.join_timeout, kCreateWithin);
  const bool is_sealed =
      !options.secret_file.empty() || !options.secret.empty() || !options.tls_ca.empty();
  if (is_sealed) return Status();
  return Status::error(StatusCode::kUnavailable,
                       "rank %d: UDP does not pass between all ranks: rank 0 says between which",
                       options.rank.value_or(0));
}

Status examine_paths_as_rank(Options options, const std::string& json_path) {
  // `gathering` must live until the communicator exists, because other ranks may read the gathered
  // values until then.
  auto gathering = doctor::Gathering::join(options);
  if (gathering && !gathering->ok()) return gathering->status();
  if (gathering) {
    if (Status status = examine_reach(**gathering, options); !status.ok()) return status;
  }
  auto communicator = Communicator::create(options);
  if (!communicator.ok()) return communicator.status();
  const auto report = doctor::measure_paths(**communicator);
  if (!report.ok()) return report.status();
  return (*communicator)->rank() == 0 ? show_paths(*report, json_path) : Status();
}

int examine_paths(const PathsArguments& arguments) {
  auto options = Options::from_environment();
  if (!options.ok()) return complain(options.status());
  const bool alone = arguments.ranks == 0 && !options->world_size;
  if (alone) {
    return complain(Status::error(StatusCode::kInvalidArgument,
                                  "--paths is run by all ranks: start it as the job is started "
                                  "(LEEWAY_RANK, LEEWAY_WORLD_SIZE, LEEWAY_RENDEZVOUS, or a "
                                  "launcher), or try it here with --ranks 2"));
  }
  const auto launched = launch_local_ranks(arguments.ranks);
  if (!launched.ok()) return complain(launched.status());
  if (!launched->is_worker) return launched->exit_code;
  options->transport = TransportKind::udp;  // also for exact calls, because these are measured
  const Status status = examine_paths_as_rank(*options, arguments.json_path);
  return status.ok() ? 0 : complain(status);
}

}  // namespace

void register_doctor(CLI::App& app, int& exit_code) {
  CLI::App* const command =
      app.add_subcommand("doctor", "Say what this machine lacks, and the command that mends it");
  const auto json_path = std::make_shared<std::string>();
  command->add_option("--json", *json_path,
                      "Also write the findings to this file (- for standard output only)");
  const auto paths = std::make_shared<PathsArguments>();
  command->add_flag("--paths", paths->wanted,
                    "Measure what lies between all ranks, in 10 s: run it as a job is run");
  command->add_option("--ranks", paths->ranks, "With --paths: start so many processes here");
  const auto program = std::make_shared<std::string>();
  command->add_option("program", *program,
                      "Look at this program instead: does `leeway nccl` reach its NCCL?");
  command->callback([json_path, paths, program, &exit_code] {
    paths->json_path = *json_path;
    exit_code = paths->wanted ? examine_paths(*paths) : examine(*program, *json_path);
  });
}

}  // namespace leeway::tools
