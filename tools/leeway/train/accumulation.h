// One rank's part of a step: the gradients of the micro-batches that its budget of time allows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "leeway/communicator.h"
#include "leeway/compute_budget.h"
#include "train/corpus.h"
#include "train/model.h"
#include "train/settings.h"
#include "train/straggler.h"

namespace leeway::tools::train {

// A delayed micro-batch spends this share of its delay in the forward pass and the rest in the
// backward pass, which computes twice as much. Between the two it may be given up.
inline constexpr double kForwardShare = 1.0 / 3.0;

class Accumulation {
 public:
  // Collective. `communicator`, `model` and the text must outlive it.
  static Result<std::unique_ptr<Accumulation>> create(Communicator& communicator, Gpt& model,
                                                      std::span<const std::uint8_t> text,
                                                      const Settings& settings, std::uint64_t seed);

  // Leaves the sum over the completed micro-batches in model.gradient(), and its weight in
  // budget(). Returns the mean of their losses, or nullopt if none was completed.
  std::optional<double> compute(std::uint64_t step);

  ComputeBudget& budget() { return *budget_; }

 private:
  Accumulation(std::unique_ptr<ComputeBudget> budget, Gpt& model, BatchSampler sampler,
               Straggler straggler);

  std::optional<double> add(Duration delay);

  std::unique_ptr<ComputeBudget> budget_;
  Gpt& model_;
  BatchSampler sampler_;
  Straggler straggler_;
};

}  // namespace leeway::tools::train
