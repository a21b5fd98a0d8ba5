#include "train/flat_parameters.h"

#include <functional>
#include <numeric>

namespace leeway::tools::train {
namespace {

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::span<float> span_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

std::size_t FlatParameters::add(std::vector<std::int64_t> shape) {
  shapes_.push_back(std::move(shape));
  return shapes_.size() - 1;
}

void FlatParameters::allocate() {
  std::int64_t total = 0;
  for (const auto& shape : shapes_) total += element_count(shape);
  values_ = at::zeros({total}, at::kFloat);
  gradients_ = at::zeros({total}, at::kFloat);

  std::int64_t offset = 0;
  for (const auto& shape : shapes_) {
    const std::int64_t count = element_count(shape);
    // The flat tensor never requires a gradient, so each view is a leaf of its own. The leaf's
    // .grad exists beforehand, so autograd accumulates in place, into the flat gradient.
    at::Tensor leaf = values_.narrow(0, offset, count).view(shape);
    leaf.set_requires_grad(true);
    leaf.mutable_grad() = gradients_.narrow(0, offset, count).view(shape);
    views_.push_back(std::move(leaf));
    offset += count;
  }
}

std::span<float> FlatParameters::values() {
  return span_of(values_);
}
std::span<float> FlatParameters::gradients() {
  return span_of(gradients_);
}
std::span<const float> FlatParameters::values() const {
  return span_of(values_);
}

void FlatParameters::zero_gradients() {
  gradients_.zero_();
}

}  // namespace leeway::tools::train
