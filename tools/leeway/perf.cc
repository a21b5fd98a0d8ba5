// leeway perf: measures collectives and prints them as nccl-tests does.

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "exit_code.h"
#include "farewell.h"
#include "launch.h"
#include "leeway/communicator.h"
#include "leeway/version.h"
#include "perf/communicators.h"
#include "perf/json.h"
#include "perf/measurement.h"
#include "perf/settings.h"
#include "perf/table.h"
#include "standard_output.h"
#include "text_file.h"

namespace leeway::tools {
namespace {

using namespace std::chrono_literals;
// All code here parses options for namespace perf, or prints its results.
using namespace perf;  // NOLINT(google-build-using-namespace)

void add_options(CLI::App& command, Arguments& a) {
  command.add_option("--op", a.operation, "Collective, e.g. all_reduce, reduce_scatter, sendrecv")
      ->capture_default_str();
  command.add_option("--ranks", a.ranks, "Local processes to start; not needed under a launcher")
      ->capture_default_str();
  command.add_option("--min", a.bytes_min, "Smallest size in bytes; K, M, G allowed")
      ->capture_default_str();
  command.add_option("--max", a.bytes_max, "Largest size")->capture_default_str();
  command.add_option("--factor", a.factor, "Ratio of consecutive sizes")->capture_default_str();
  command.add_option("--iters", a.iterations, "Timed iterations a size")->capture_default_str();
  command.add_option("--warmup", a.warmup, "Untimed iterations before them")->capture_default_str();
  command.add_option("--back-to-back", a.back_to_back,
                     "Calls of a timed iteration, without a barrier between them; also says what a "
                     "call costs in datagrams and processor time");
  command.add_option("--check", a.checks, "Calls whose result is compared with the truth")
      ->capture_default_str();
  command.add_option("--dtype", a.dtype, "Element type, e.g. float, bfloat16, int32")
      ->capture_default_str();
  command
      .add_option("--redop", a.redop,
                  "Reduction: sum, avg, prod, min, max, premul_sum, band, bor, bxor")
      ->capture_default_str();
  command.add_option("--root", a.root, "Root of rooted operations")->capture_default_str();
  command.add_option("--communicators", a.communicators,
                     "Further communicators of all ranks, open meanwhile; says what they cost");
  command.add_flag("--allocate", a.allocate,
                   "Tensors lie in memory that all ranks of a host map, where they can");
  command
      .add_option("--codec", a.codec,
                  "How float travels: native, bf16, nvfp4, nvfp4:nearest, mxfp4:floor:rotate, "
                  "luq:draws=2, sparse:1/2, automatic, ...; `leeway codec list` shows all")
      ->capture_default_str();
  command.add_option("--spread-codec", a.spread_codec,
                     "The same for the spread half of all_reduce (default: as --codec)");
  command.add_option("--delivery", a.delivery, "exact, best_effort or bounded:LOSS")
      ->capture_default_str();
  command.add_option("--spread", a.spread, "Spread half of all_reduce: exact or best_effort")
      ->capture_default_str();
  command.add_option("--deadline-ms", a.deadline_ms,
                     "Deadline of a call (default 60000 exact, 1000 lossy)");
  command.add_option("--estimator", a.estimator, "How lossy sums are formed")
      ->capture_default_str();
  command.add_option("--loss", a.loss, "Fraction of datagrams to lose");
  command.add_option("--burst", a.burst, "Mean length of loss bursts in packets");
  command.add_option("--seed", a.seed, "Seed of losses and permutations");
  command.add_option("--transport", a.transport,
                     "auto, udp, verbs, ucx, inproc, shm or mixed (default: LEEWAY_TRANSPORT's)");
  command.add_flag("--multicast", a.multicast,
                   "Send once what goes to all ranks alike (default: LEEWAY_MULTICAST's)");
  command.add_option("--lanes", a.lanes,
                     "Sockets with a thread each, over UDP (default: LEEWAY_LANES's)");
  command.add_option("--datagram-bytes", a.datagram_bytes,
                     "Largest datagram (default: from the path MTU)");
  command.add_option("--json", a.json_path,
                     "Also write the rows to this file (- for standard output)");
}

// Ranks that `--ranks` started have the same arguments, files and variables. So only rank 0 prints
// what is wrong with these. Ranks of another launcher each print their own errors, because their
// hosts may differ.
int complain_of_rank(const Status& status, int rank) {
  const bool said_by_rank_0 = is_usage(status) && rank != 0 && is_started_by_launcher();
  return said_by_rank_0 ? kExitUsage : complain(status);
}

// The library's to_string() returns views of string literals, which end in a zero.
const char* c_str(std::string_view name) {
  return name.data();
}

std::string codecs_of(const Settings& settings) {
  std::string codec = to_string(settings.collective.codec);
  if (!settings.collective.spread_codec) return codec;
  return codec + " (spread " + to_string(*settings.collective.spread_codec) + ")";
}

void print_preamble(const Communicator& communicator, const Settings& settings) {
  const CollectiveOptions& options = settings.collective;
  const FaultOptions& faults = communicator.options().faults;
  std::printf("# leeway perf %s\n# Collective test starting: %s_perf\n", LEEWAY_VERSION_STRING,
              c_str(to_string(settings.operation)));
  std::printf(
      "# ranks %d minBytes %zu maxBytes %zu warmup iters: %d iters: %d validation: %d datagram: "
      "%zu bytes\n",
      communicator.size(), settings.sizes.front(), settings.sizes.back(), settings.warmup,
      settings.iterations, settings.checks, communicator.datagram_bytes());
  if (settings.back_to_back > 0) {
    std::printf("# each iteration times %d calls without a barrier between them, out of place\n",
                settings.back_to_back);
  }
  std::printf("# transport %s, multicast %s\n", c_str(to_string(communicator.transport())),
              communicator.options().multicast ? "on" : "off");
  if (communicator.options().lanes > 1) std::printf("# lanes %d\n", communicator.options().lanes);
  std::printf("# mode %s: delivery %s, spread %s, deadline %lld ms, codec %s, estimator %s\n",
              settings.lossy() ? "lossy" : "exact", c_str(to_string(options.delivery.kind)),
              c_str(to_string(options.spread)),
              static_cast<long long>(options.delivery.deadline / 1ms), codecs_of(settings).c_str(),
              c_str(to_string(options.estimator)));
  std::printf("# injected loss %g %% in bursts of mean %g packets, seed %llu\n#\n",
              faults.loss * 100, faults.burst, static_cast<unsigned long long>(faults.seed));
}

void print_cost(const CommunicatorCost& cost) {
  std::printf(
      "# %d more communicators of all ranks: all splits %.3f s; with all of them a process has at "
      "most %lld threads, %lld sockets and %.1f MiB of Leeway's\n#\n",
      cost.communicators, cost.split_s, static_cast<long long>(cost.process.threads),
      static_cast<long long>(cost.process.sockets),
      static_cast<double>(cost.process.memory_bytes) / (1 << 20));
}

// Counts for the footer, as in nccl-tests: the halves of rows (out of place and in place), the
// halves that had wrong results, and the sum of the halves' bandwidths.
struct Totals {
  int halves = 0;
  int halves_wrong = 0;
  double busbw_sum = 0;

  void add(const Side& side) {
    ++halves;
    halves_wrong += side.wrong.value_or(0) > 0;
    busbw_sum += side.busbw_GBps;
  }
};

Status conclude(const Communicator& communicator, const Settings& settings,
                std::span<const Row> rows, const std::optional<CommunicatorCost>& cost,
                const Totals& totals) {
  print(format_footer(totals.halves_wrong, totals.busbw_sum / totals.halves,
                      to_string(settings.operation)));
  if (settings.json_path.empty()) return Status();
  return write_text(settings.json_path, to_json(rows, settings, communicator.options().faults,
                                                communicator.size(), cost));
}

Result<int> run_rank(const Options& options, const Settings& settings, Farewell& farewell) {
  const Footprint before = measure_footprint();
  auto created = farewell.create(options);
  if (!created.ok()) return created.status();
  Communicator& communicator = **created;
  const bool is_printer = communicator.rank() == 0;
  if (settings.root >= communicator.size()) {
    return Status::error(StatusCode::kInvalidArgument, "--root %d of %d ranks", settings.root,
                         communicator.size());
  }
  if (is_printer) print_preamble(communicator, settings);
  std::vector<std::unique_ptr<Communicator>> further;
  std::optional<CommunicatorCost> cost;
  if (settings.communicators > 0) {
    const auto opened = open_communicators(communicator, settings.communicators, before, further);
    if (!opened.ok()) return opened.status();
    cost = *opened;
    if (is_printer) print_cost(*cost);
  }
  if (is_printer) print(format_header());
  std::vector<Row> rows;
  Totals totals;
  for (const std::size_t bytes : settings.sizes) {
    const auto row = measure(communicator, settings, bytes);
    if (!row.ok()) return row.status();
    rows.push_back(*row);
    totals.add(row->out_of_place);
    if (row->in_place) totals.add(*row->in_place);
    if (is_printer) print(format_row(*row));
    if (is_printer && row->spending) print(format_spending(*row->spending));
  }
  if (is_printer) {
    if (const Status status = conclude(communicator, settings, rows, cost, totals); !status.ok())
      return status;
  }
  return totals.halves_wrong > 0 ? kExitFailed : 0;
}

int run(Arguments arguments) {
  const auto settings = understand(arguments);
  if (!settings.ok()) return complain(settings.status());
  auto options = communicator_options(arguments);
  if (!options.ok()) return complain(options.status());
  if (arguments.ranks == 0 && !options->world_size) arguments.ranks = kRanksDefault;
  const auto launched = launch_local_ranks(arguments.ranks);
  if (!launched.ok()) return complain(launched.status());
  if (!launched->is_worker) return launched->exit_code;
  if (!options->world_size) {  // one rank, and no launcher that set the number of ranks
    options->rank = 0;
    options->world_size = 1;
  }
  Farewell farewell;
  const auto exit_code = run_rank(*options, *settings, farewell);
  if (farewell.exit_code() != 0) {
    std::fprintf(stderr, "leeway: rank %d was interrupted, and has told the others\n",
                 options->rank.value_or(0));
    return farewell.exit_code();
  }
  return exit_code.ok() ? *exit_code
                        : complain_of_rank(exit_code.status(), options->rank.value_or(0));
}

}  // namespace

void register_perf(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("perf", "Measure collectives in nccl-tests' format");
  auto arguments = std::make_shared<Arguments>();
  add_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace leeway::tools
