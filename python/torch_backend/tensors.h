// Tensors of torch as Leeway's.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "leeway/types.h"

namespace leeway::torch_backend {

// Contiguous host memory of a type that reductions know. Throws what to do otherwise.
TensorView reducible(const at::Tensor& tensor, const char* call);
// The same for calls that only copy: elements of types that Leeway does not know travel as bytes.
TensorView copyable(const at::Tensor& tensor);

// Throws unless the tensor is strided, and on the CPU or on CUDA.
void require_supported(const at::Tensor& tensor, const char* call);

// Complex tensors as pairs of reals, for sums and averages.
at::Tensor as_real(const at::Tensor& tensor);

// The host memory that a call works on. It is the tensor's own where that can be, else new memory;
// of tensors of CUDA it is pinned, and this thread has waited for the copy.
//
// With the tensor's elements, in the order of its strides where it is dense
at::Tensor host_memory(const at::Tensor& tensor);
// With the tensor's elements, in contiguous order
at::Tensor host_input(const at::Tensor& tensor);
// For what the tensor is to hold, in contiguous order
at::Tensor host_output(const at::Tensor& tensor);
// New memory of this shape and of the tensor's type
at::Tensor host_room(at::IntArrayRef shape, const at::Tensor& like);

// One flat tensor of these tensors' type and number of elements; with their elements, or without.
at::Tensor flattened(const std::vector<at::Tensor>& tensors);
at::Tensor flat_room(const std::vector<at::Tensor>& like);
// Elements of `flat`, one tensor after the other, to these tensors.
void unflatten(const at::Tensor& flat, const std::vector<at::Tensor>& tensors);

// Elements of each, and their sum.
std::vector<std::size_t> counts_of(const std::vector<at::Tensor>& tensors);

}  // namespace leeway::torch_backend
