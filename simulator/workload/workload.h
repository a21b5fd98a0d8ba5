// What ranks compute between collectives: gradients, and what they do with the averages.
//
// One object holds all ranks. Each rank has its own parameters, because replicas may drift. If
// collectives give the same results, ranks compute the same floats with every compiler: functions
// such as exp are in-tree, and sums have a fixed order.
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

// A figure of a run for summary.json, such as "workload.error" or "workload.perplexity".
struct Measure {
  std::string name;
  double value = 0;
};

class Workload {
 public:
  virtual ~Workload() = default;

  virtual std::size_t elements() const = 0;

  // Returns the rank's parameters, elements() of them, into which a replica broadcast writes. All
  // ranks start with the same values. Empty for a workload without a model (synthetic).
  virtual std::span<float> parameters(std::uint32_t rank) = 0;

  // Writes the rank's gradient at its own parameters, which depends only on (rank, round,
  // parameters).
  virtual void gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) = 0;

  // Writes the sum of the gradients of the completed micro-batches. If all are completed, this is
  // gradient() times their number. By default all micro-batches of a round have the same gradient.
  virtual void gradient_sum(std::uint32_t rank, std::uint32_t round, MicroBatches micro_batches,
                            std::span<float> out);

  // Makes one optimizer step. `mean` is the averaged gradient as `rank` has it, from element
  // `offset` on; after an all_reduce it has all elements. `parameters` are the same elements of the
  // rank's parameters, or of the owner's unrounded copy.
  virtual void update(std::uint32_t rank, std::uint32_t round, std::size_t offset,
                      std::span<const float> mean, std::span<float> parameters) = 0;

  // Returns how bad the rank's model is: the objective above its optimum, or the perplexity. NaN if
  // there is no model.
  virtual double loss(std::uint32_t rank) = 0;

  // Returns the workload's measures. Called at the end of a run.
  virtual std::vector<Measure> measures() = 0;
};

// Returns the standard deviation of the noise in a sum over the completed micro-batches. The noise
// of each is independent and has deviation sqrt(planned), so that a mean over all planned
// micro-batches has deviation 1.
float noise_of_sum(MicroBatches micro_batches);

// Makes synthetic, quadratic and logistic workloads. Returns kUnsupported for gpt, which needs
// libtorch; the command makes it (tools/leeway/sim).
Result<std::unique_ptr<Workload>> make_workload(const scenario::Scenario& scenario,
                                                std::uint64_t seed);

}  // namespace leeway::sim
