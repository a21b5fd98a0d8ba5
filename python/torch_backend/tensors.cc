#include "tensors.h"

#include <optional>

namespace leeway::torch_backend {
namespace {

std::optional<DataType> dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DataType::f32;
    case at::kDouble:
      return DataType::f64;
    case at::kHalf:
      return DataType::f16;
    case at::kBFloat16:
      return DataType::bf16;
    case at::kChar:
      return DataType::i8;
    case at::kInt:
      return DataType::i32;
    case at::kLong:
      return DataType::i64;
    case at::kByte:
      return DataType::u8;
    case at::kUInt32:
      return DataType::u32;
    case at::kUInt64:
      return DataType::u64;
    case at::kFloat8_e4m3fn:
      return DataType::f8e4m3;
    case at::kFloat8_e5m2:
      return DataType::f8e5m2;
    case at::kBool:
      return DataType::boolean;
    default:
      return std::nullopt;
  }
}

TensorView view_of(const at::Tensor& tensor, DataType dtype, std::size_t elements) {
  // A tensor without elements may have no memory.
  return {elements == 0 ? nullptr : tensor.data_ptr(), elements, dtype};
}

}  // namespace

void require_supported(const at::Tensor& tensor, const char* call) {
  TORCH_CHECK(tensor.layout() == at::kStrided, call,
              ": sparse tensors are not supported by leeway");
  TORCH_CHECK(tensor.is_cpu() || tensor.is_cuda(), call, ": the tensor is on ", tensor.device(),
              "; leeway moves tensors of the CPU and of CUDA, so pass tensor.cpu()");
}

TensorView reducible(const at::Tensor& tensor, const char* call) {
  const auto dtype = dtype_of(tensor.scalar_type());
  TORCH_CHECK(dtype, call, ": leeway cannot reduce tensors of ", tensor.scalar_type(),
              "; convert it, to float32 for example");
  return view_of(tensor, *dtype, static_cast<std::size_t>(tensor.numel()));
}

TensorView copyable(const at::Tensor& tensor) {
  if (const auto dtype = dtype_of(tensor.scalar_type()))
    return view_of(tensor, *dtype, static_cast<std::size_t>(tensor.numel()));
  return view_of(tensor, DataType::u8, tensor.nbytes());
}

at::Tensor as_real(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor) : tensor;
}

at::Tensor host_room(at::IntArrayRef shape, const at::Tensor& like) {
  return at::empty(shape, like.options().device(at::kCPU).pinned_memory(like.is_cuda()));
}

at::Tensor host_memory(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_non_overlapping_and_dense() ? tensor : host_input(tensor);
}

at::Tensor host_input(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor.contiguous();
  return host_room(tensor.sizes(), tensor).copy_(tensor);
}

at::Tensor host_output(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.is_contiguous() ? tensor : host_room(tensor.sizes(), tensor);
}

at::Tensor flat_room(const std::vector<at::Tensor>& like) {
  std::int64_t elements = 0;
  for (const at::Tensor& tensor : like) elements += tensor.numel();
  return host_room({elements}, like.at(0));
}

at::Tensor flattened(const std::vector<at::Tensor>& tensors) {
  at::Tensor flat = flat_room(tensors);
  std::int64_t at = 0;
  for (const at::Tensor& tensor : tensors) {
    flat.narrow(0, at, tensor.numel()).view_as(tensor).copy_(tensor);
    at += tensor.numel();
  }
  return flat;
}

void unflatten(const at::Tensor& flat, const std::vector<at::Tensor>& tensors) {
  std::int64_t at = 0;
  for (at::Tensor tensor : tensors) {
    tensor.copy_(flat.narrow(0, at, tensor.numel()).view_as(tensor));
    at += tensor.numel();
  }
}

std::vector<std::size_t> counts_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::size_t> counts;
  for (const at::Tensor& tensor : tensors)
    counts.push_back(static_cast<std::size_t>(tensor.numel()));
  return counts;
}

}  // namespace leeway::torch_backend
