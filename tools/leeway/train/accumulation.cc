#include "train/accumulation.h"

#include <thread>
#include <utility>

namespace leeway::tools::train {
namespace {

ComputeBudgetOptions budget_options(const ComputeSettings& compute) {
  ComputeBudgetOptions options;
  options.micro_batches = static_cast<std::uint32_t>(compute.micro_batches);
  options.threshold = compute.threshold;
  options.normalisation = compute.normalisation;
  if (compute.drops()) {
    options.compensation = compute.compensation;
  } else {
    options.window_steps = 0;  // no exchange is needed, since all ranks complete all micro-batches
  }
  return options;
}

}  // namespace

Accumulation::Accumulation(std::unique_ptr<ComputeBudget> budget, Gpt& model, BatchSampler sampler,
                           Straggler straggler)
    : budget_(std::move(budget)),
      model_(model),
      sampler_(std::move(sampler)),
      straggler_(std::move(straggler)) {}

Result<std::unique_ptr<Accumulation>> Accumulation::create(Communicator& communicator, Gpt& model,
                                                           std::span<const std::uint8_t> text,
                                                           const Settings& settings,
                                                           std::uint64_t seed) {
  const ComputeSettings& compute = settings.compute;
  auto budget = ComputeBudget::create(communicator, budget_options(compute));
  if (!budget.ok()) return budget.status();
  // The micro-batches of a step together hold as many windows as one whole batch.
  BatchSampler sampler(text, static_cast<std::size_t>(settings.context) + 1,
                       static_cast<std::size_t>(settings.batch / compute.micro_batches), seed,
                       communicator.rank());
  return std::unique_ptr<Accumulation>(
      new Accumulation(std::move(budget).value(), model, std::move(sampler),
                       Straggler(compute.straggler, seed, communicator.rank())));
}

std::optional<double> Accumulation::compute(std::uint64_t step) {
  model_.clear_gradient();
  double losses = 0;
  for (std::size_t index = 0; budget_->next_micro_batch(); ++index) {
    const auto loss = add(straggler_.delay(step, index));
    if (!loss) break;
    losses += *loss;
  }
  const std::uint32_t completed = budget_->completed();
  return completed > 0 ? std::optional(losses / completed) : std::nullopt;
}

// Adds a micro-batch that takes `delay` longer. Returns its loss, or nullopt if it was given up
// between forward and backward pass.
std::optional<double> Accumulation::add(Duration delay) {
  const auto forward = std::chrono::duration_cast<Duration>(kForwardShare * delay);
  std::this_thread::sleep_for(forward);
  return model_.add_gradient(sampler_.batch(budget_->micro_batch()), [&] {
    if (budget_->should_stop()) return true;
    std::this_thread::sleep_for(delay - forward);
    return false;
  });
}

}  // namespace leeway::tools::train
