// The ranks' computation between the collectives: gradients, and the use of their averages.
//
// One object holds all ranks. Parameters are per rank, since replicas may drift. Given the same
// results the same floats come out on every compiler: no libm where a value is decided (exp and the
// like are in-tree), sums in a stated order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compute/micro_batches.h"
#include "leeway/status.h"
#include "scenario.pb.h"

namespace leeway::sim {

// A figure of a run, for summary.json: "workload.error", "workload.perplexity".
struct Measure {
  std::string name;
  double value = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;

  virtual std::size_t elements() const = 0;

  // Returns the parameters that `rank` holds, elements() of them; a replica broadcast writes there.
  // Equal on all ranks at first. Returns none for a workload without a model (synthetic).
  virtual std::span<float> parameters(std::uint32_t rank) = 0;

  // The gradient of `rank` in `round`, at its own parameters. A function of (rank, round,
  // parameters) and nothing else.
  virtual void gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) = 0;

  // The sum of the gradients of the completed micro-batches. If all are completed, it is gradient()
  // times their number. By default the micro-batches of a round are all alike.
  virtual void gradient_sum(std::uint32_t rank, std::uint32_t round, MicroBatches micro_batches,
                            std::span<float> out);

  // Makes one optimizer step with the mean gradient of elements offset .. offset + mean.size(), as
  // `rank` got it. `parameters` is that part of what the rank holds, or of the owner's unrounded
  // copy. all_reduce: offset 0 and all elements.
  virtual void update(std::uint32_t rank, std::uint32_t round, std::size_t offset,
                      std::span<const float> mean, std::span<float> parameters) = 0;

  // Returns how good the model of `rank` is now, smaller is better: the objective over its optimum,
  // or the perplexity. NaN if there is no model.
  virtual double loss(std::uint32_t rank) = 0;

  // Returns the workload's measures. Called at the end of a run.
  virtual std::vector<Measure> measures() = 0;
};

// Returns the deviation of the sum over the completed micro-batches, if the mean over all planned
// ones has deviation 1 and their noise is independent. Each micro-batch then has sqrt(planned).
float noise_of_sum(MicroBatches micro_batches);

// Makes synthetic, quadratic and logistic workloads. Returns kUnsupported for gpt, which needs
// libtorch and is made by the command (tools/leeway/sim).
Result<std::unique_ptr<Workload>> make_workload(const scenario::Scenario& scenario,
                                                std::uint64_t seed);

}  // namespace leeway::sim
