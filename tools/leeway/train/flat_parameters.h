// All parameters of a model in one flat float32 buffer, and all their gradients in a second one.
//
// The collectives want one contiguous range, autograd wants many tensors: here every tensor is a
// *view* into the flat buffers, so that neither side ever copies. A packet that lands in `values()`
// has changed the model; a backward pass has filled `gradients()`. Only files of the target
// leeway_train_model include this header (it pulls in libtorch).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leeway::tools::train {

class FlatParameters {
 public:
  // Call add() for every tensor first, then allocate() once; views exist from then on.
  // Returns the tensor's index for view().
  std::size_t add(std::vector<std::int64_t> shape);
  void allocate();

  // A leaf tensor that requires a gradient. Its values and its .grad lie in the flat buffers.
  const at::Tensor& view(std::size_t index) const { return views_[index]; }

  std::span<float> values();
  std::span<float> gradients();
  std::span<const float> values() const;

  // Sets all gradients to zero, because backward passes add to what is there.
  void zero_gradients();

 private:
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<at::Tensor> views_;
  at::Tensor values_;
  at::Tensor gradients_;
};

}  // namespace leeway::tools::train
