// A small GPT over characters, which `leeway train` trains.
//
// Pre-norm transformer with causal multi-head attention, ALiBi (a bias towards near characters)
// instead of position embeddings, ReLU and an untied output layer. The loss is the mean
// cross-entropy in nats per character. Parameters and gradients are one flat float32 range each
// (flat_parameters.h), on which collectives work. This header does not include libtorch.
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

  // The spans stay valid as long as the model. Writing to parameters() changes the model at once.
  std::span<float> parameters();
  std::span<float> gradient();

  // `windows` holds any number of windows of context + 1 tokens, back to back; token i predicts
  // token i + 1. Returns the mean loss, and sets gradient() to its derivative.
  double compute_gradient(std::span<const std::int64_t> windows);

  // For a step of several micro-batches: add_gradient() adds the derivative of a micro-batch's mean
  // loss to gradient(), and returns that loss. It calls `abandon` once, between forward and
  // backward pass. If `abandon` returns true, nothing is added, and the result is nullopt.
  void clear_gradient();
  std::optional<double> add_gradient(std::span<const std::int64_t> windows,
                                     const std::function<bool()>& abandon);

  double mean_loss(std::span<const std::int64_t> windows);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Limits this process to one compute thread. Otherwise, with more ranks than cores, threads of
// different ranks spin while they wait, which costs far more than it gains. Call it before the
// first Gpt is made.
void use_one_compute_thread();

}  // namespace leeway::tools::train
