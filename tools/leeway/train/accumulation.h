// Accumulates one rank's gradient of a step, over as many micro-batches as its compute budget
// allows.
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

// Share of a micro-batch's delay before the backward pass, which computes twice as much as the
// forward pass. Between the two passes a micro-batch may be given up.
inline constexpr double kForwardShare = 1.0 / 3.0;

class Accumulation {
 public:
  // All ranks must call it together. `communicator`, `model` and `text` must outlive the result.
  static Result<std::unique_ptr<Accumulation>> create(Communicator& communicator, Gpt& model,
                                                      std::span<const std::uint8_t> text,
                                                      const Settings& settings, std::uint64_t seed);

  // Computes one step. Leaves the sum over the completed micro-batches in model.gradient(), and
  // their weight in budget(). Returns their mean loss, or nullopt if none was completed.
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
