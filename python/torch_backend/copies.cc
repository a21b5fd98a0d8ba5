// Calls that only move elements.
#include "backend.h"

#include "arguments.h"
#include "tensors.h"

namespace leeway::torch_backend {
namespace {

using c10d::OpType;

// Returns the number of elements in each rank's block. `splits` has the blocks' sizes in rows; if
// it is empty, blocks are equal.
std::vector<std::size_t> blocks_of(const at::Tensor& tensor,
                                   const std::vector<std::int64_t>& splits, int size,
                                   const char* call) {
  const std::int64_t rows = tensor.dim() > 0 ? tensor.size(0) : 1;
  const std::int64_t row = rows > 0 ? tensor.numel() / rows : 0;
  std::vector<std::size_t> counts;
  if (splits.empty()) {
    TORCH_CHECK(rows % size == 0, call, ": ", rows, " rows cannot be split equally between ", size,
                " ranks");
    counts.assign(static_cast<std::size_t>(size), static_cast<std::size_t>(rows / size * row));
    return counts;
  }
  TORCH_CHECK(splits.size() == static_cast<std::size_t>(size), call, ": ", splits.size(),
              " split sizes for ", size, " ranks");
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) {
    counts.push_back(static_cast<std::size_t>(split * row));
    sum += split;
  }
  TORCH_CHECK(sum == rows, call, ": split sizes add up to ", sum, " and not to the tensor's ", rows,
              " rows");
  return counts;
}

}  // namespace

c10::intrusive_ptr<c10d::Work> LeewayBackend::broadcast(Tensors& tensors,
                                                        const c10d::BroadcastOptions& opts) {
  constexpr const char* kCall = "broadcast";
  at::Tensor& tensor = single(tensors, kCall);
  require_supported(tensor, kCall);
  Call call = begin(OpType::BROADCAST, "broadcast", tensors);
  call.outputs = tensors;
  // Ranks' strides may differ, so elements travel in contiguous order.
  const at::Tensor memory = host_input(tensor);
  call.kept = {memory};
  call.works.push_back(communicator().broadcast_async(
      copyable(memory), static_cast<Rank>(opts.rootRank), copying(opts.timeout)));
  if (opts.rootRank != getRank()) copy_back(call, memory, tensor);
  return issue(std::move(call));
}

void LeewayBackend::start_all_gather(Call& call, const Tensors& outputs, const at::Tensor& input,
                                     const CollectiveOptions& options) {
  constexpr const char* kCall = "all_gather";
  TORCH_CHECK(outputs.size() == static_cast<std::size_t>(getSize()), kCall, ": ", outputs.size(),
              " outputs for ", getSize(), " ranks");
  same_type(outputs, input, kCall);
  const at::Tensor from = host_input(input);
  const at::Tensor flat = flat_room(outputs);
  call.kept.insert(call.kept.end(), {from, flat});
  const TensorView to = copyable(flat);
  const std::vector<std::size_t> counts = scaled(counts_of(outputs), flat, to);
  call.works.push_back(
      communicator().all_gather_async(copyable(from), to, Blocks(counts), options));
  call.after = [flat, outputs, before = std::move(call.after)] {
    if (before) before();
    unflatten(flat, outputs);
  };
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::allgather(std::vector<Tensors>& outputs,
                                                        Tensors& inputs,
                                                        const c10d::AllgatherOptions& opts) {
  const at::Tensor& input = single(inputs, "all_gather");
  const Tensors& into = single(outputs, "all_gather");
  Call call = begin(OpType::ALLGATHER, "all_gather", inputs);
  call.outputs = into;
  start_all_gather(call, into, input, copying(opts.timeout));
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                              const c10d::AllgatherOptions& opts) {
  constexpr const char* kCall = "all_gather_into_tensor";
  TORCH_CHECK(output.numel() == input.numel() * getSize(), kCall, ": the output has ",
              output.numel(), " elements, and not ", getSize(), " times the input's ",
              input.numel());
  same_type({output}, input, kCall);
  Call call = begin(OpType::_ALLGATHER_BASE, "_allgather_base", {input});
  call.outputs = {output};
  const at::Tensor from = host_input(input);
  const at::Tensor to = host_output(output);
  call.kept = {from, to};
  call.works.push_back(
      communicator().all_gather_async(copyable(from), copyable(to), copying(opts.timeout)));
  copy_back(call, to, output);
  return issue(std::move(call));
}

// outputs[i][j] receives input j of rank i.
c10::intrusive_ptr<c10d::Work> LeewayBackend::allgather_coalesced(
    std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  TORCH_CHECK(outputs.size() == static_cast<std::size_t>(getSize()),
              "all_gather_coalesced: ", outputs.size(), " lists of outputs for ", getSize(),
              " ranks");
  Call call = begin(OpType::ALLGATHER_COALESCED, "all_gather", inputs);
  for (const Tensors& list : outputs) {
    TORCH_CHECK(list.size() == inputs.size(), "all_gather_coalesced: ", list.size(),
                " outputs for ", inputs.size(), " inputs");
    call.outputs.insert(call.outputs.end(), list.begin(), list.end());
  }
  for (std::size_t j = 0; j < inputs.size(); ++j) {
    Tensors into;
    for (const Tensors& list : outputs) into.push_back(list[j]);
    start_all_gather(call, into, inputs[j], copying(opts.timeout));
  }
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  TORCH_CHECK(outputs.size() == inputs.size(), "all_gather_into_tensor_coalesced: ", outputs.size(),
              " outputs for ", inputs.size(), " inputs");
  return coalesced([&] {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      (void)_allgather_base(outputs[i], inputs[i], opts);
  });
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                     const c10d::GatherOptions& opts) {
  constexpr const char* kCall = "gather";
  const at::Tensor& input = single(inputs, kCall);
  require_supported(input, kCall);
  Call call = begin(OpType::GATHER, "gather", inputs);
  const at::Tensor from = host_input(input);
  call.kept = {from};
  const TensorView sent = copyable(from);
  TensorView to(nullptr, 0, sent.dtype);
  if (opts.rootRank == getRank()) {
    const Tensors& into = single(outputs, kCall);
    TORCH_CHECK(into.size() == static_cast<std::size_t>(getSize()), kCall, ": ", into.size(),
                " outputs for ", getSize(), " ranks");
    same_type(into, input, kCall);
    for (const at::Tensor& one : into)
      TORCH_CHECK(one.numel() == input.numel(), kCall, ": an output of ", one.numel(),
                  " elements for inputs of ", input.numel());
    const at::Tensor flat = flat_room(into);
    call.kept.push_back(flat);
    call.outputs = into;
    to = copyable(flat);
    call.after = [flat, into] { unflatten(flat, into); };
  } else {
    TORCH_CHECK(outputs.empty() || outputs[0].empty(), kCall, ": only the root has outputs");
  }
  call.works.push_back(communicator().gather_async(sent, to, static_cast<Rank>(opts.rootRank),
                                                   copying(opts.timeout)));
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::scatter(Tensors& outputs,
                                                      std::vector<Tensors>& inputs,
                                                      const c10d::ScatterOptions& opts) {
  constexpr const char* kCall = "scatter";
  at::Tensor& output = single(outputs, kCall);
  require_supported(output, kCall);
  const bool root = opts.rootRank == getRank();
  Call call = begin(OpType::SCATTER, "scatter", root ? single(inputs, kCall) : Tensors());
  call.outputs = outputs;
  const at::Tensor to = host_room({output.numel()}, output);
  call.kept = {to};
  const TensorView received = copyable(to);
  ConstTensorView all(nullptr, 0, received.dtype);
  if (root) {
    const Tensors& parts = single(inputs, kCall);
    TORCH_CHECK(parts.size() == static_cast<std::size_t>(getSize()), kCall, ": ", parts.size(),
                " inputs for ", getSize(), " ranks");
    same_type(parts, output, kCall);
    const at::Tensor flat = flattened(parts);
    call.kept.push_back(flat);
    all = copyable(flat);
  } else {
    TORCH_CHECK(inputs.empty() || inputs[0].empty(), kCall, ": only the root has inputs");
  }
  call.works.push_back(communicator().scatter_async(all, received, static_cast<Rank>(opts.rootRank),
                                                    copying(opts.timeout)));
  call.after = [to, output] { output.copy_(to.view_as(output)); };
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::alltoall_base(
    at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
    std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& opts) {
  constexpr const char* kCall = "all_to_all_single";
  same_type({output}, input, kCall);
  Call call = begin(OpType::ALLTOALL_BASE, "all_to_all", {input});
  call.outputs = {output};
  const at::Tensor from = host_input(input);
  const at::Tensor to = host_output(output);
  call.kept = {from, to};
  const TensorView sent = copyable(from);
  const TensorView received = copyable(to);
  const auto input_counts = scaled(blocks_of(from, input_splits, getSize(), kCall), from, sent);
  const auto output_counts = scaled(blocks_of(to, output_splits, getSize(), kCall), to, received);
  call.works.push_back(communicator().all_to_all_async(
      sent, Blocks(input_counts), received, Blocks(output_counts), copying(opts.timeout)));
  copy_back(call, to, output);
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                                       const c10d::AllToAllOptions& opts) {
  constexpr const char* kCall = "all_to_all";
  const auto ranks = static_cast<std::size_t>(getSize());
  TORCH_CHECK(outputs.size() == ranks && inputs.size() == ranks, kCall, ": ", inputs.size(),
              " inputs and ", outputs.size(), " outputs for ", ranks, " ranks");
  same_type(inputs, inputs[0], kCall);
  same_type(outputs, inputs[0], kCall);
  Call call = begin(OpType::ALLTOALL, "all_to_all", inputs);
  call.outputs = outputs;
  const at::Tensor from = flattened(inputs);
  const at::Tensor to = flat_room(outputs);
  call.kept = {from, to};
  const TensorView sent = copyable(from);
  const TensorView received = copyable(to);
  const auto input_counts = scaled(counts_of(inputs), from, sent);
  const auto output_counts = scaled(counts_of(outputs), to, received);
  call.works.push_back(communicator().all_to_all_async(
      sent, Blocks(input_counts), received, Blocks(output_counts), copying(opts.timeout)));
  call.after = [to, outputs] { unflatten(to, outputs); };
  return issue(std::move(call));
}

}  // namespace leeway::torch_backend
