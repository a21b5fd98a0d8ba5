#include "arguments.h"

#include "tensors.h"

namespace leeway::torch_backend {

at::Tensor& single(Tensors& tensors, const char* call) {
  TORCH_CHECK(tensors.size() == 1, call, ": leeway takes one tensor a rank, not ", tensors.size());
  return tensors[0];
}

Tensors& single(std::vector<Tensors>& lists, const char* call) {
  TORCH_CHECK(lists.size() == 1, call, ": leeway takes one list a rank, not ", lists.size());
  return lists[0];
}

void same_type(const Tensors& tensors, const at::Tensor& like, const char* call) {
  for (const at::Tensor& tensor : tensors) {
    require_supported(tensor, call);
    TORCH_CHECK(tensor.scalar_type() == like.scalar_type(), call, ": tensors of ",
                like.scalar_type(), " and of ", tensor.scalar_type(), " in one call");
  }
}

std::vector<std::size_t> scaled(std::vector<std::size_t> counts, const at::Tensor& tensor,
                                const ConstTensorView& view) {
  const std::size_t size = tensor.element_size() / size_of(view.dtype);
  for (std::size_t& count : counts) count *= size;
  return counts;
}

void copy_back(Call& call, const at::Tensor& from, const at::Tensor& to) {
  if (!from.is_same(to)) call.after = [from, to] { to.copy_(from); };
}

}  // namespace leeway::torch_backend
