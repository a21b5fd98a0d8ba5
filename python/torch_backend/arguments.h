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

// Returns the only element of the argument. PyTorch passes a list, but a rank of Leeway gives one
// tensor, or one list of tensors. Throws if there is none or more than one.
at::Tensor& single(Tensors& tensors, const char* call);
Tensors& single(std::vector<Tensors>& lists, const char* call);

// Throws unless all tensors are in memory that Leeway reaches and have the type of `like`.
void same_type(const Tensors& tensors, const at::Tensor& like, const char* call);

// Returns `counts` of elements of `tensor`, converted to bytes if `view` shows elements as bytes.
std::vector<std::size_t> scaled(std::vector<std::size_t> counts, const at::Tensor& tensor,
                                const ConstTensorView& view);

// Makes `call`, once it has succeeded, copy the elements of `from` to `to`. `from` is the memory in
// which the call works, and `to` is the caller's tensor. Does nothing if the two are the same.
void copy_back(Call& call, const at::Tensor& from, const at::Tensor& to);

}  // namespace leeway::torch_backend
