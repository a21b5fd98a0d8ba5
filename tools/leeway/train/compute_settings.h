// How a rank of `leeway train` computes its part of a step: number of micro-batches, artificial
// delays, and the time at which it stops.
#pragma once

#include <cstdint>
#include <string>

#include "leeway/compute_budget.h"
#include "leeway/status.h"
#include "train/straggler.h"

namespace leeway::tools::train {

// Default number of micro-batches in a step, if some may be dropped; otherwise it is 1.
inline constexpr int kMicroBatchesDefault = 8;

struct ComputeArguments {
  int micro_batches = 0;  // with 0, the default
  std::string threshold = "none";
  std::string straggler = "none";
  std::string compensation;   // without one, extra_steps
  std::string normalisation;  // without one, realised
  bool baseline = true;
};

// These return values as on the command line. A compensation is none, extra_steps or requeue; a
// normalisation is realised or maximum; a threshold is none, auto or a number of seconds.
const char* to_string(DropCompensation compensation);
const char* to_string(Normalisation normalisation);
std::string to_string(const ComputeThreshold& threshold);

struct ComputeSettings {
  int micro_batches = 1;  // for each step and rank
  StragglerModel straggler;
  ComputeThreshold threshold = no_threshold;
  DropCompensation compensation = DropCompensation::extra_steps;
  Normalisation normalisation = Normalisation::realised_weight;
  bool baseline = false;  // also makes a run without the threshold

  bool drops() const { return threshold.kind != ComputeThreshold::Kind::none; }
};

// Checks the arguments. Refuses meaningless settings with a one-line error. `batch` is the number
// of windows for each rank and step. `ranks` is 0 if it is not known yet.
Result<ComputeSettings> understand_compute(const ComputeArguments& arguments, int batch, int ranks);

}  // namespace leeway::tools::train
