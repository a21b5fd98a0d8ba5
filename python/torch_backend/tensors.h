// Converts torch's tensors to Leeway's.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "leeway/types.h"

namespace leeway::torch_backend {

// Returns a view of a tensor that lies contiguous in host memory. If reductions do not know the
// tensor's type, throws an error that says what to do.
TensorView reducible(const at::Tensor& tensor, const char* call);
// Returns a view of such a tensor for calls that move elements and do not compute with them.
// Elements of types that Leeway does not know travel as bytes.
TensorView copyable(const at::Tensor& tensor);

// Throws unless the tensor is strided, and on the CPU or on CUDA.
void require_supported(const at::Tensor& tensor, const char* call);

// Returns a view of a complex tensor as pairs of reals, for sums and averages. Returns any other
// tensor as it is.
at::Tensor as_real(const at::Tensor& tensor);

// The next functions return the host memory that a call works on. It is the tensor's own if
// possible, else new memory. For CUDA tensors it is pinned, and this thread has waited for the
// copy.
//
// host_memory() has the tensor's elements, in the order of its strides if it is dense.
at::Tensor host_memory(const at::Tensor& tensor);
// host_input() has the tensor's elements, in contiguous order.
at::Tensor host_input(const at::Tensor& tensor);
// host_output() has room for results of the tensor's shape, in contiguous order.
at::Tensor host_output(const at::Tensor& tensor);
// host_room() is always new memory, of this shape and of the type of `like`.
at::Tensor host_room(at::IntArrayRef shape, const at::Tensor& like);

// Copies these tensors' elements into one flat tensor of their type.
at::Tensor flattened(const std::vector<at::Tensor>& tensors);
// Returns an uninitialised flat tensor with room for all elements of these tensors, of their type.
at::Tensor flat_room(const std::vector<at::Tensor>& like);
// Copies the elements of `flat` to these tensors, one tensor after the other.
void unflatten(const at::Tensor& flat, const std::vector<at::Tensor>& tensors);

// Number of elements of each tensor.
std::vector<std::size_t> counts_of(const std::vector<at::Tensor>& tensors);

}  // namespace leeway::torch_backend
