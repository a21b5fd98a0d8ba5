// The simulator's workload `gpt`: virtual workers train the model of `leeway train`, each with a
// replica of its own.
//
// A rank reads the same windows of the same text as in `leeway train` with the same seed. The
// optimizer is Adam with the schedule of `leeway train`, over the scenario's rounds. In rounds of
// replica_step it updates only the owner's shard.
//
// libtorch's arithmetic depends on the processor, so runs repeat on one machine, but not between
// machines.
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

  // Both parts of `corpus` must hold at least one window of options.shape.context + 1 characters.
  GptWorkload(const Options& options, train::Corpus corpus, std::uint64_t seed);

  std::size_t elements() const override { return parameters_.elements(); }
  std::span<float> parameters(std::uint32_t rank) override { return parameters_.of(rank); }
  void gradient(std::uint32_t rank, std::uint32_t round, std::span<float> out) override;
  void update(std::uint32_t rank, std::uint32_t round, std::size_t offset,
              std::span<const float> mean, std::span<float> parameters) override;

  // Returns the perplexity of the rank's replica on all validation windows, after its last round.
  // Before that it returns NaN, because scoring takes as long as dozens of gradients.
  double loss(std::uint32_t rank) override;
  std::vector<sim::Measure> measures() override;

 private:
  void load(std::uint32_t rank);
  // Scores the loaded parameters on rank `rank`'s share of the validation windows, if `ranks` ranks
  // share them. Returns the sum of losses in nats, and sets `windows` to the number of windows.
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
