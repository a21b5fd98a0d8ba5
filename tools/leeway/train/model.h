// A small GPT over characters: the workload of `leeway train`.
//
// Pre-norm transformer, causal multi-head attention with a bias towards what is near (ALiBi)
// instead of position embeddings, ReLU, untied output layer; mean cross-entropy in nats per
// character. Parameters and gradients are one flat float32 range each (flat_parameters.h), which is
// what the collectives work on. libtorch stays behind this header: nothing here includes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace leeway::tools::train {

struct GptShape {
  int vocabulary = 0;
  int context = 0;  // number of characters that the model sees
  int layers = 0;
  int width = 0;
  int heads = 0;  // divides width
};

class Gpt {
 public:
  // Equal shape and seed give equal initial parameters on every rank and machine.
  Gpt(const GptShape& shape, std::uint64_t seed);
  ~Gpt();
  Gpt(const Gpt&) = delete;
  Gpt& operator=(const Gpt&) = delete;

  // Stable for the life of the model. Writing to parameters() changes the model at once.
  std::span<float> parameters();
  std::span<float> gradient();

  // `windows` holds any number of windows of context + 1 tokens, back to back: token i predicts
  // token i + 1. Returns the mean loss; gradient() holds its derivative and nothing of earlier
  // calls.
  double compute_gradient(std::span<const std::int64_t> windows);

  // The same for a step of several micro-batches: gradient() holds the sum of the derivatives of
  // their mean losses since clear_gradient(). `abandon` is called once, between the forward and the
  // backward pass. If it returns true, nothing is added and nothing is returned.
  void clear_gradient();
  std::optional<double> add_gradient(std::span<const std::int64_t> windows,
                                     const std::function<bool()>& abandon);

  double mean_loss(std::span<const std::int64_t> windows);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One compute thread in this process. There may be more ranks than cores, and threads of several
// ranks that spin for each other cost far more than they gain. Call before the first Gpt.
void use_one_compute_thread();

}  // namespace leeway::tools::train
