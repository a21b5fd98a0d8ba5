// Checks that calls make of their arguments, and results as values or exceptions.
#pragma once

#include <c10/util/Exception.h>

#include <utility>
#include <vector>

#include "call_work.h"
#include "leeway/status.h"

namespace leeway::torch_backend {

// Returns the value, or throws DistBackendError.
template <typename Value>
Value value_of(Result<Value>&& result) {
  TORCH_CHECK_WITH(DistBackendError, result.ok(), "leeway: ", result.status().c_str());
  return std::move(*result);
}

// Returns the one tensor, or list of tensors, that a rank gives. Throws if there is none or more
// than one.
at::Tensor& single(Tensors& tensors, const char* call);
Tensors& single(std::vector<Tensors>& lists, const char* call);

// Throws unless all tensors are in memory that Leeway reaches and have the type of `like`.
void same_type(const Tensors& tensors, const at::Tensor& like, const char* call);

// Converts counts to bytes if elements travel as bytes.
std::vector<std::size_t> scaled(std::vector<std::size_t> counts, const at::Tensor& tensor,
                                const ConstTensorView& view);

// Makes the call copy elements from the memory that it wrote to the caller's tensor, if they
// differ.
void copy_back(Call& call, const at::Tensor& from, const at::Tensor& to);

}  // namespace leeway::torch_backend
