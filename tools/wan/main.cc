// wan_lab: runs a program as several ranks, each in a network namespace behind a line of a
// wide-area network, which this program emulates with the simulator's links.
//
// There are two processes: the parent starts the ranks and waits for them; its child carries their
// packets.

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exit_code.h"
#include "namespaces.h"
#include "network_plan.h"
#include "packet_loop.h"
#include "quantity.h"
#include "rank_entry.h"
#include "rank_processes.h"
#include "report.h"
#include "text_file.h"
#include "wan.h"

namespace leeway::lab {
namespace {

// Exit code if this machine does not permit namespaces, as in tools/vm_test.
constexpr int kExitNotPermitted = 77;
constexpr int kExitBehind = 78;  // --strict, and the laboratory fell behind its own clock
constexpr char kEnd = 'e';       // the ranks have ended, and the report is due

struct Arguments {
  NetworkArguments network;
  std::vector<std::string> mtus{"1500"};
  std::vector<std::string> path_mtus;
  bool tell_path_mtu = false;
  std::string congestion_control;
  std::uint64_t seed = 1;
  std::string grain = "100us";
  std::string json_path;
  std::string output = "first";
  bool quiet = false;
  bool strict = false;
  bool print_scenario = false;
  std::vector<std::string> command;
};

void add_network_options(CLI::App& app, NetworkArguments& a) {
  app.add_option("--ranks", a.ranks, "Namespaces, and processes of the program")
      ->capture_default_str();
  app.add_option("--sites", a.sites,
                 "So many sites share the ranks; a site's ranks share its line "
                 "(default: a site for each rank)");
  app.add_option("--rate", a.rate, "Of every line, up and down: 100Mb, 1.5Gb (default: unlimited)");
  app.add_option("--downlink", a.downlink, "Of the lines down, or none (default: the rate)");
  app.add_option("--rtt", a.rtt, "Round trip between two sites: 50ms (default: 0)");
  app.add_option("--jitter", a.jitter, "A way takes half of the round trip, so much more or less");
  app.add_flag("--reorder", a.reorder, "Jitter lets packets overtake each other");
  app.add_option("--queue", a.queue, "In front of every line: 10ms of its rate, or 64K bytes")
      ->capture_default_str();
  app.add_option("--ecn", a.ecn, "Mark packets that find so much in the queue: 5ms, or 20K");
  app.add_option("--loss", a.loss, "Random losses between two sites: 1%, 0.01");
  app.add_option("--burst", a.burst, "Mean length of a burst of losses in packets");
  app.add_option("--gilbert", a.gilbert, "Gilbert-Elliott losses p,r,1-h,1-k as netem's gemodel");
  app.add_option("--link", a.links,
                 "A further link rule as scenarios have them, e.g. "
                 "'tier: uplink from: \"3\" rate_mbps: 25'");
  app.add_option("--scenario", a.scenario_path, "Take topology and links from this scenario");
}

void add_options(CLI::App& app, Arguments& a) {
  add_network_options(app, a.network);
  app.add_option("--mtu", a.mtus, "Of the ranks' devices: one for all, or one a rank")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--path-mtu", a.path_mtus,
                 "Drop longer packets: 1300; 1300@5s from then on; 2:1300@5s on rank 2's ways");
  app.add_flag("--tell-path-mtu", a.tell_path_mtu, "Answer them by ICMP, as good routers do");
  app.add_option("--congctl", a.congestion_control,
                 "TCP congestion control of all ranks: cubic, bbr (default: the kernel's)");
  app.add_option("--seed", a.seed, "Of random losses and jitter")->capture_default_str();
  app.add_option("--grain", a.grain, "Packets may come so much late; less costs more of a core")
      ->capture_default_str();
  app.add_option("--json", a.json_path, "Write the report to this file, too (- for stdout)");
  app.add_option("--output", a.output, "Whose standard output is shown: first or all")
      ->capture_default_str()
      ->check(CLI::IsMember({"first", "all"}));
  app.add_flag("--quiet", a.quiet, "No report on standard error");
  app.add_flag("--strict", a.strict, "Exit status 78 if the laboratory could not keep up");
  app.add_flag("--print-scenario", a.print_scenario,
               "Print the network as a scenario of the simulator and end");
  app.add_option("command", a.command,
                 "-- program and arguments; LEEWAY_RANK and its like are set");
}

struct Lab {
  sim::scenario::Scenario scenario;
  WanOptions wan;
  DeviceOptions devices;
  Duration grain{};
};

Result<Lab> plan(const Arguments& arguments) {
  auto scenario = plan_network(arguments.network);
  if (!scenario.ok()) return scenario.status();
  Lab lab{.scenario = *std::move(scenario), .wan = {}, .devices = {}, .grain = {}};
  lab.wan.seed = arguments.seed;
  lab.wan.first_address = kFirstAddress;
  lab.wan.tell_path_mtu = arguments.tell_path_mtu;
  const auto grain_ms = parse_time_ms(arguments.grain);
  if (!grain_ms.ok() || *grain_ms >= 1000) {
    return Status::error(StatusCode::kInvalidArgument, "--grain: '%s' is not a time below 1s",
                         arguments.grain.c_str());
  }
  lab.grain = Duration(static_cast<std::int64_t>(*grain_ms * 1e6));
  for (const std::string& text : arguments.path_mtus) {
    const auto mtu = parse_path_mtu(text);
    if (!mtu.ok()) return mtu.status();
    lab.wan.path_mtus.push_back(*mtu);
  }
  for (const std::string& text : arguments.mtus) {
    const auto bytes = parse_bytes(text);
    if (!bytes.ok() || *bytes < 68 || *bytes > kPacketBytesMax) {
      return Status::error(StatusCode::kInvalidArgument, "--mtu: '%s' is not 68 to 65535 bytes",
                           text.c_str());
    }
    lab.devices.mtus.push_back(static_cast<std::uint32_t>(*bytes));
  }
  if (lab.devices.mtus.size() != 1 && lab.devices.mtus.size() != lab.scenario.ranks()) {
    return Status::error(StatusCode::kInvalidArgument, "--mtu has %zu values for %u ranks",
                         lab.devices.mtus.size(), lab.scenario.ranks());
  }
  lab.devices.congestion_control = arguments.congestion_control;
  return lab;
}

// ---- child: carries the packets -----------------------------------------------------------------

// Carries packets until the parent writes to the pipe `control`, and then reports. The ranks are in
// this process's group. If the parent is killed, the pipe closes without a message, and this
// process kills its group: the ranks and everything that they started.
int carry_packets(const Lab& lab, const std::vector<RankNetwork>& networks, int control,
                  const Arguments& arguments) {
  ::setpgid(0, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_IGN);
  std::vector<int> devices;
  devices.reserve(networks.size());
  for (const RankNetwork& network : networks) devices.push_back(network.device_fd);
  const auto loop = std::make_unique<PacketLoop>(devices, lab.grain);
  const auto wan = Wan::make(lab.scenario, lab.wan, *loop);
  if (!wan.ok()) return tools::complain(wan.status());
  if (!loop->run(**wan, control)) ::kill(0, SIGKILL);

  LabReport report{(*wan)->counters(), (*wan)->links(), (*wan)->under_way(), loop->precision()};
  report.precision.device_drops = device_drops(networks);
  if (!arguments.quiet) std::fputs(report_text(report).c_str(), stderr);
  if (!arguments.json_path.empty()) {
    const Status status = tools::write_text(arguments.json_path, report_json(report));
    if (!status.ok()) return tools::complain(status, 1);
  }
  return arguments.strict && !report.precision.kept_up() ? kExitBehind : 0;
}

// ---- parent: waits for the ranks ----------------------------------------------------------------

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Kills processes that the ranks' programs left behind. Those outside the ranks' group became
// children of this process, because it is a subreaper.
void end_leftovers(pid_t group) {
  ::kill(-group, SIGKILL);
  const std::string self = std::to_string(::getpid());
  for (int round = 0; round < 100; ++round) {
    std::ifstream children("/proc/self/task/" + self + "/children");
    bool any = false;
    for (pid_t pid = 0; children >> pid; any = true) ::kill(pid, SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (!any) return;
    ::usleep(1000);
  }
}

// Ends the ranks if the process that carries packets was killed. Otherwise the ranks would wait for
// their time-outs.
void end_ranks_with(pid_t carrier) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(carrier), &info, WEXITED | WNOWAIT) != 0) return;
  if (info.si_code == CLD_EXITED) return;
  std::fprintf(stderr, "wan_lab: the process that carries the packets was killed\n");
  ::kill(-carrier, SIGTERM);
}

Result<int> run_ranks(const Arguments& arguments, const std::vector<RankNetwork>& networks,
                      pid_t carrier) {
  RankEntry entry;
  for (const RankNetwork& network : networks) entry.namespace_fds.push_back(network.namespace_fd);
  if (arguments.output == "all") entry.output_fd = ::fcntl(STDOUT_FILENO, F_DUPFD, 3);
  entry.group = carrier;
  announce_ranks(entry);
  return tools::run_rank_processes({.program = "/proc/self/exe",
                                    .argv = arguments.command,
                                    .ranks = static_cast<int>(networks.size()),
                                    .rendezvous = address_text(0)});
}

int run(const Arguments& arguments, const Lab& lab) {
  auto networks = make_namespaces(lab.scenario.ranks(), lab.devices);
  if (!networks.ok()) {
    const bool usage = networks.status().code() == StatusCode::kInvalidArgument;
    return tools::complain(networks.status(), usage ? tools::kExitUsage : kExitNotPermitted);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::array<int, 2> control{};
  if (::pipe2(control.data(), O_CLOEXEC) != 0) return 1;
  const pid_t carrier = ::fork();
  if (carrier < 0) return 1;
  if (carrier == 0) {
    ::close(control[1]);
    ::_exit(carry_packets(lab, *networks, control[0], arguments));
  }
  // Parent and child both call setpgid(), so that the group exists whichever of them runs first.
  ::setpgid(carrier, carrier);
  ::close(control[0]);
  for (const RankNetwork& network : *networks) ::close(network.device_fd);

  // Other threads block all signals, so that only this thread gets them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::thread watcher(end_ranks_with, carrier);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const auto exit_code = run_ranks(arguments, *networks, carrier);
  ::signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] const ssize_t told = ::write(control[1], &kEnd, 1);
  watcher.join();
  int status = 0;
  ::waitpid(carrier, &status, 0);
  end_leftovers(carrier);
  if (!exit_code.ok()) return tools::complain(exit_code.status(), 1);
  return *exit_code != 0 ? *exit_code : exit_code_of(status);
}

int run(const Arguments& arguments) {
  if (arguments.print_scenario) {
    const auto scenario = plan_network(arguments.network);
    if (!scenario.ok()) return tools::complain(scenario.status(), tools::kExitUsage);
    const auto text = scenario_text(arguments.network);
    if (!text.ok()) return tools::complain(text.status());
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  const auto lab = plan(arguments);
  if (!lab.ok()) return tools::complain(lab.status(), tools::kExitUsage);
  if (arguments.command.empty()) {
    const Status status = Status::error(StatusCode::kInvalidArgument,
                                        "no program; give it and its arguments behind --");
    return tools::complain(status, tools::kExitUsage);
  }
  return run(arguments, *lab);
}

}  // namespace
}  // namespace leeway::lab

int main(int argc, char** argv) {
  if (const auto exit_code = leeway::lab::become_rank(argv)) return *exit_code;
  // Only CLI11 and lack of memory throw exceptions here; the library throws none.
  try {
    CLI::App app("Runs a program as ranks behind the lines of a wide-area network", "wan_lab");
    leeway::lab::Arguments arguments;
    leeway::lab::add_options(app, arguments);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& refusal) {  // --help comes this way too, as code 0
      return app.exit(refusal) == 0 ? 0 : leeway::tools::kExitUsage;
    }
    return leeway::lab::run(arguments);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
}
