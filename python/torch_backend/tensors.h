// Tensors of torch as Leeway's.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "leeway/types.h"

namespace leeway::torch_backend {

// A contiguous tensor of the CPU, of a type that reductions know. Throws what to do otherwise.
TensorView reducible(const at::Tensor& tensor, const char* call);
// The same for calls that only copy: elements of types that Leeway does not know travel as bytes.
TensorView copyable(const at::Tensor& tensor, const char* call);

// Throws unless the tensor is dense, on the CPU and of strided layout.
void require_host(const at::Tensor& tensor, const char* call);

// Complex tensors as pairs of reals, for sums and averages.
at::Tensor as_real(const at::Tensor& tensor);

// The memory that a call works on: the tensor itself where it is contiguous, else a new one with
// its elements.
at::Tensor contiguous_twin(const at::Tensor& tensor);

// One flat tensor of these tensors' type and number of elements; with their elements, or without.
at::Tensor flattened(const std::vector<at::Tensor>& tensors);
at::Tensor flat_room(const std::vector<at::Tensor>& like);
// Elements of `flat`, one tensor after the other, to these tensors.
void unflatten(const at::Tensor& flat, const std::vector<at::Tensor>& tensors);

// Elements of each, and their sum.
std::vector<std::size_t> counts_of(const std::vector<at::Tensor>& tensors);

}  // namespace leeway::torch_backend
