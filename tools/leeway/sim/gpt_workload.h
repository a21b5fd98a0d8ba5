// The model of `leeway train` as a workload of the simulator: a character GPT, trained by virtual
// workers with replicas of their own.
//
// A rank reads the windows that `leeway train` would give it with the same seed, from the same
// text. The optimizer is Adam with the schedule of `leeway train`, over the scenario's rounds. In
// rounds of replica_step it updates only the owner's shard.
//
// libtorch's arithmetic depends on the processor: runs repeat on a machine, not between machines.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "leeway/status.h"
#include "scenario.pb.h"
#include "sim/gpt_optimizer.h"
#include "train/corpus.h"
#include "train/model.h"
#include "workload/rank_parameters.h"
#include "workload/workload.h"

namespace leeway::tools::simulation {

// A sim::WorkloadFactory that knows all workloads.
Result<std::unique_ptr<sim::Workload>> make_workload_with_gpt(
    const sim::scenario::Scenario& scenario, std::uint64_t seed);

// Measures, at the end of a run:
//   workload.perplexity         of the validation text: every rank scores its share of the windows
//                               with its own replica, stale values included, as `leeway train` does
//   workload.training_loss      mean over ranks of the loss of their last batch, nats a character
//   workload.bigram_perplexity  what a table of character pairs reaches on the same text
class GptWorkload final : public sim::Workload {
 public:
  struct Options {
    std::uint32_t ranks = 1;
    std::uint32_t rounds = 1;
    train::GptShape shape;
    std::size_t batch = 1;  // windows for each rank and round
    double learning_rate = 0.001;
  };

  // The corpus has windows of the shape's context + 1 in both of its parts.
  GptWorkload(const Options& options, train::Corpus corpus, std::uint64_t seed);

  std::size_t elements() const override { return parameters_.elements(); }
  std::span<float> parameters(std::uint32_t rank) override { return parameters_.of(rank); }
  void gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) override;
  void update(std::uint32_t rank, std::uint32_t round, std::size_t offset,
              std::span<const float> mean, std::span<float> parameters) override;

  // Perplexity of the rank's replica on all validation windows, after its last round; NaN before:
  // scoring takes as long as dozens of gradients.
  double loss(std::uint32_t rank) override;
  std::vector<sim::Measure> measures() override;

 private:
  void load(std::uint32_t rank);
  // Total loss in nats over the windows that `rank` scores, if `ranks` share them, with the loaded
  // parameters. Sets `windows` to their number.
  double nats(int rank, int ranks, std::size_t& windows);

  Options options_;
  train::Corpus corpus_;
  train::Gpt model_;  // holds one replica at a time
  sim::RankParameters parameters_;
  std::vector<train::BatchSampler> samplers_;
  std::vector<double> training_losses_;
  std::vector<std::uint32_t> rounds_done_;
  GptOptimizer optimizer_;
};

}  // namespace leeway::tools::simulation
