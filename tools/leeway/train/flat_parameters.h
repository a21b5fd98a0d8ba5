// All parameters of a model in one flat float32 buffer, and all gradients in another.
//
// Collectives need one contiguous range, but autograd needs many tensors. So every tensor is a
// *view* into the flat buffers, and nothing is copied: a packet that arrives in `values()` changes
// the model, and a backward pass fills `gradients()`. Only files of the target leeway_train_model
// include this header, because it includes libtorch.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leeway::tools::train {

class FlatParameters {
 public:
  // add() every tensor, then allocate() once, which makes the views. add() returns the index for
  // view().
  std::size_t add(std::vector<std::int64_t> shape);
  void allocate();

  // Returns a leaf tensor that requires a gradient. Its values and its .grad are in the flat
  // buffers.
  const at::Tensor& view(std::size_t index) const { return views_[index]; }

  std::span<float> values();
  std::span<float> gradients();
  std::span<const float> values() const;

  // Sets all gradients to zero. Needed before each step, because backward passes add to them.
  void zero_gradients();

 private:
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<at::Tensor> views_;
  at::Tensor values_;
  at::Tensor gradients_;
};

}  // namespace leeway::tools::train
