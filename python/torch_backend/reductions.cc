// Calls that reduce.
#include "backend.h"

#include <numeric>

#include "arguments.h"
#include "tensors.h"

namespace leeway::torch_backend {
namespace {

using c10d::OpType;

ReduceOp op_of(const c10d::ReduceOp& op, const char* call) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::sum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::avg;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::prod;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    case c10d::ReduceOp::BAND:
      return ReduceOp::band;
    case c10d::ReduceOp::BOR:
      return ReduceOp::bor;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::bxor;
    case c10d::ReduceOp::PREMUL_SUM:
      return ReduceOp::premul_sum;
    default:
      TORCH_CHECK(false, call, ": no such reduction");
  }
}

double factor_of(const c10d::ReduceOp& op) {
  const auto* const supplement =
      static_cast<const c10d::PreMulSumSupplement*>(op.supplement_.get());
  if (supplement == nullptr) return 1;
  return supplement->tensor_factor.defined() ? supplement->tensor_factor.item<double>()
                                             : supplement->double_factor;
}

}  // namespace

CollectiveOptions LeewayBackend::reducing(const c10d::ReduceOp& op, const at::Tensor& tensor,
                                          std::chrono::milliseconds timeout,
                                          const char* call) const {
  const ReduceOp meant = op_of(op, call);
  const bool lossy = options_->gradients && at::isFloatingType(tensor.scalar_type()) &&
                     (meant == ReduceOp::sum || meant == ReduceOp::avg) &&
                     tensor.nbytes() >= options_->lossy_min_bytes;
  CollectiveOptions options = lossy ? *options_->gradients : copying(timeout);
  options.op = meant;
  if (meant == ReduceOp::premul_sum) options.factor = factor_of(op);
  return options;
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::allreduce(Tensors& tensors,
                                                        const c10d::AllreduceOptions& opts) {
  constexpr const char* kCall = "all_reduce";
  at::Tensor& tensor = single(tensors, kCall);
  if (tensor.is_sparse()) return allreduce_sparse(tensors, opts);
  Call call = begin(OpType::ALLREDUCE, "all_reduce", tensors);
  call.outputs = tensors;
  require_supported(tensor, kCall);
  TORCH_CHECK(!tensor.is_complex() || c10d::isComplexViewAsRealAllowed(opts.reduceOp),
              "all_reduce does not support", " this reduction on complex tensors");
  const at::Tensor memory = host_memory(tensor);
  call.kept = {memory};
  call.works.push_back(communicator().all_reduce_async(
      reducible(as_real(memory), kCall),
      reducing(opts.reduceOp, as_real(memory), opts.timeout, kCall)));
  copy_back(call, memory, tensor);
  return issue(std::move(call));
}

// Every rank gathers all ranks' entries, and adds up those of the same index. The numbers of
// entries must be known first; this call waits for them.
c10::intrusive_ptr<c10d::Work> LeewayBackend::allreduce_sparse(Tensors& tensors,
                                                               const c10d::AllreduceOptions& opts) {
  constexpr const char* kCall = "all_reduce of a sparse tensor";
  at::Tensor& tensor = single(tensors, kCall);
  TORCH_CHECK(opts.reduceOp == c10d::ReduceOp::SUM, kCall, ": only sums are supported");
  const at::Tensor entries = tensor.coalesce();
  require_supported(entries.values(), kCall);
  const at::Tensor indices = host_input(entries.indices().t());  // one row for each entry
  const at::Tensor values = host_input(entries.values());
  const CollectiveOptions options = copying(opts.timeout);
  const auto ranks = static_cast<std::size_t>(getSize());
  const auto counted = std::make_shared<std::vector<std::int64_t>>(ranks + 1);  // and our own count
  counted->back() = values.size(0);
  const auto entry_counts = std::span(*counted).first(ranks);
  (void)value_of(wait_interruptibly(
      communicator().all_gather_async(std::span<const std::int64_t>(*counted).last(1), entry_counts,
                                      options),
      counted));
  const std::int64_t sum =
      std::accumulate(entry_counts.begin(), entry_counts.end(), std::int64_t{0});

  Call call = begin(OpType::_ALLREDUCE_SPARSE, "all_reduce", tensors);
  call.outputs = tensors;
  const auto gather_rows = [&](const at::Tensor& rows) {
    std::vector<std::int64_t> shape = rows.sizes().vec();
    shape[0] = sum;
    const at::Tensor all = host_room(shape, rows);
    call.kept.insert(call.kept.end(), {rows, all});
    std::vector<std::size_t> counts;
    for (const std::int64_t count : entry_counts)
      counts.push_back(static_cast<std::size_t>(sum == 0 ? 0 : count * (all.numel() / sum)));
    const TensorView to = copyable(all);
    call.works.push_back(communicator().all_gather_async(copyable(rows), to,
                                                         Blocks(scaled(counts, all, to)), options));
    return all;
  };
  const at::Tensor all_indices = gather_rows(indices);
  const at::Tensor all_values = gather_rows(values);
  call.after = [all_indices, all_values, tensor] {
    const at::Tensor total = at::sparse_coo_tensor(all_indices.t(), all_values, tensor.sizes(),
                                                   all_values.options().layout(at::kSparse));
    tensor.copy_(total.coalesce().to(tensor.device()));
  };
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) {
  constexpr const char* kCall = "all_reduce_coalesced";
  TORCH_CHECK(!tensors.empty(), kCall, ": no tensors");
  same_type(tensors, tensors[0], kCall);
  Call call = begin(OpType::ALLREDUCE_COALESCED, "all_reduce", tensors);
  call.outputs = tensors;
  const at::Tensor flat = flattened(tensors);
  call.kept = {flat};
  call.works.push_back(
      communicator().all_reduce_async(reducible(as_real(flat), kCall),
                                      reducing(opts.reduceOp, as_real(flat), opts.timeout, kCall)));
  call.after = [flat, tensors] { unflatten(flat, tensors); };
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::reduce(Tensors& tensors,
                                                     const c10d::ReduceOptions& opts) {
  constexpr const char* kCall = "reduce";
  at::Tensor& tensor = single(tensors, kCall);
  require_supported(tensor, kCall);
  Call call = begin(OpType::REDUCE, "reduce", tensors);
  call.outputs = tensors;
  const at::Tensor input = host_memory(tensor);
  const bool root = opts.rootRank == getRank();
  // The result needs memory of its own, and only the root has a result.
  const at::Tensor output = root ? at::empty_like(input) : at::Tensor();
  call.kept = {input, output};
  const TensorView from = reducible(as_real(input), kCall);
  call.works.push_back(communicator().reduce_async(
      from, root ? reducible(as_real(output), kCall) : TensorView(nullptr, 0, from.dtype),
      static_cast<Rank>(opts.rootRank),
      reducing(opts.reduceOp, as_real(input), opts.timeout, kCall)));
  if (root) call.after = [output, tensor] { tensor.copy_(output); };
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& opts) {
  constexpr const char* kCall = "reduce_scatter_tensor";
  TORCH_CHECK(input.numel() == output.numel() * getSize(), kCall, ": the input has ", input.numel(),
              " elements, and not ", getSize(), " times the output's ", output.numel());
  same_type({input}, output, kCall);
  Call call = begin(OpType::_REDUCE_SCATTER_BASE, "_reduce_scatter_base", {input});
  call.outputs = {output};
  const at::Tensor from = host_input(input);
  const at::Tensor to = host_output(output);
  call.kept = {from, to};
  call.works.push_back(communicator().reduce_scatter_async(
      reducible(as_real(from), kCall), reducible(as_real(to), kCall),
      reducing(opts.reduceOp, as_real(from), opts.timeout, kCall)));
  copy_back(call, to, output);
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::reduce_scatter(
    Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ReduceScatterOptions& opts) {
  constexpr const char* kCall = "reduce_scatter";
  at::Tensor& output = single(outputs, kCall);
  const Tensors& parts = single(inputs, kCall);
  TORCH_CHECK(parts.size() == static_cast<std::size_t>(getSize()), kCall, ": ", parts.size(),
              " inputs for ", getSize(), " ranks");
  same_type(parts, output, kCall);
  Call call = begin(OpType::REDUCE_SCATTER, "reduce_scatter", parts);
  call.outputs = outputs;
  const at::Tensor flat = flattened(parts);
  const at::Tensor to = host_room({output.numel()}, output);
  call.kept = {flat, to};
  std::vector<std::size_t> counts = counts_of(parts);
  if (flat.is_complex()) {
    for (std::size_t& count : counts) count *= 2;
  }
  call.works.push_back(communicator().reduce_scatter_async(
      reducible(as_real(flat), kCall), Blocks(counts), reducible(as_real(to), kCall),
      reducing(opts.reduceOp, as_real(flat), opts.timeout, kCall)));
  call.after = [to, output] { output.copy_(to.view_as(output)); };
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& opts) {
  TORCH_CHECK(outputs.size() == inputs.size(), "reduce_scatter_tensor_coalesced: ", outputs.size(),
              " outputs for ", inputs.size(), " inputs");
  return coalesced([&] {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      (void)_reduce_scatter_base(outputs[i], inputs[i], opts);
  });
}

}  // namespace leeway::torch_backend
