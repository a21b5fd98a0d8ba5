// What each call asks of its arguments, and results that are values or exceptions.
#pragma once

#include <c10/util/Exception.h>

#include <utility>
#include <vector>

#include "call_work.h"
#include "leeway/status.h"

namespace leeway::torch_backend {

// The value, or throws DistBackendError.
template <typename Value>
Value value_of(Result<Value>&& result) {
  TORCH_CHECK_WITH(DistBackendError, result.ok(), "leeway: ", result.status().c_str());
  return std::move(*result);
}

// The one tensor, or list of tensors, that a rank gives. Throws where there are more or none.
at::Tensor& single(Tensors& tensors, const char* call);
Tensors& single(std::vector<Tensors>& lists, const char* call);

// Throws unless all are where Leeway reaches them and of the type of `like`.
void same_type(const Tensors& tensors, const at::Tensor& like, const char* call);

// Counts in bytes where elements travel as bytes.
std::vector<std::size_t> scaled(std::vector<std::size_t> counts, const at::Tensor& tensor,
                                const ConstTensorView& view);

// Elements go from the memory that the call wrote to where the caller wants them, if that differs.
void copy_back(Call& call, const at::Tensor& from, const at::Tensor& to);

}  // namespace leeway::torch_backend
