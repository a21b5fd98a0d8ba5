#include "backend.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "store_rendezvous.h"
#include "tensors.h"

namespace leeway::torch_backend {
namespace {

using c10d::OpType;

// Tags of monitoredBarrier(), beyond those that torch's users have (int).
constexpr std::uint32_t kArrivedTag = 0xFFFF'FFF0;
constexpr std::uint32_t kReleasedTag = 0xFFFF'FFF1;

template <typename Value>
Value value_of(Result<Value>&& result) {
  TORCH_CHECK_WITH(DistBackendError, result.ok(), "leeway: ", result.status().c_str());
  return std::move(*result);
}

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
    require_host(tensor, call);
    TORCH_CHECK(tensor.scalar_type() == like.scalar_type(), call, ": tensors of ",
                like.scalar_type(), " and of ", tensor.scalar_type(), " in one call");
  }
}

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

// Elements of each rank's block, of split sizes in rows or of equal parts.
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

// Counts in bytes where elements travel as bytes.
std::vector<std::size_t> scaled(std::vector<std::size_t> counts, const at::Tensor& tensor,
                                const ConstTensorView& view) {
  const std::size_t size = tensor.element_size() / size_of(view.dtype);
  for (std::size_t& count : counts) count *= size;
  return counts;
}

}  // namespace

LeewayBackend::LeewayBackend(std::unique_ptr<Communicator> communicator,
                             c10::intrusive_ptr<BackendOptions> options, std::string name)
    : c10d::Backend(communicator->rank(), communicator->size()),
      communicator_(std::move(communicator)),
      options_(std::move(options)),
      name_(std::move(name)) {}

LeewayBackend::~LeewayBackend() {
  shutdown();
}

c10::intrusive_ptr<LeewayBackend> LeewayBackend::create(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, const std::string& group,
    std::chrono::milliseconds timeout, c10::intrusive_ptr<BackendOptions> options,
    std::string name) {
  auto made = value_of(leeway::Options::from_environment(leeway::Options::Membership::from_caller));
  made.rank = rank;
  made.world_size = size;
  made.store = std::make_shared<StoreRendezvous>(store);
  made.communicator_name = group;
  if (timeout.count() > 0) made.join_timeout = timeout;
  // Towards where the local address for data lies; the store carries one small value then.
  const char* const host = std::getenv("MASTER_ADDR");
  if (made.rendezvous.empty() && host != nullptr && *host != '\0') {
    const std::string name_of_host(host);
    made.rendezvous =
        (name_of_host.find(':') == std::string::npos ? name_of_host : "[" + name_of_host + "]") +
        ":0";
  }
  if (!options) options = c10::make_intrusive<BackendOptions>(name);
  options->timeout = timeout;
  return c10::make_intrusive<LeewayBackend>(value_of(Communicator::create(made)),
                                            std::move(options), std::move(name));
}

Communicator& LeewayBackend::communicator() const {
  TORCH_CHECK_WITH(DistBackendError, communicator_ != nullptr,
                   "leeway: the process group was shut down");
  return *communicator_;
}

c10d::ErrorType LeewayBackend::getError() {
  if (communicator_ == nullptr) return c10d::ErrorType::SUCCESS;
  switch (communicator_->state()) {
    case StatusCode::kOk:
      return c10d::ErrorType::SUCCESS;
    case StatusCode::kDeadlineExceeded:
      return c10d::ErrorType::TIMEOUT;
    case StatusCode::kPeerLost:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}

void LeewayBackend::abort() {
  if (communicator_ != nullptr) communicator_->abort();
}

void LeewayBackend::shutdown() {
  communicator_.reset();
}

Duration LeewayBackend::deadline(std::chrono::milliseconds timeout) const {
  return timeout.count() > 0 ? timeout : options_->timeout;
}

CollectiveOptions LeewayBackend::copying(std::chrono::milliseconds timeout) const {
  CollectiveOptions options;
  options.delivery = exact(deadline(timeout));
  return options;
}

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

Call LeewayBackend::begin(OpType type, const char* title, Tensors inputs) {
  Call call;
  call.type = type;
  call.title = name_ + ":" + title;
  call.sequence = ++sequence_;
  call.inputs = std::move(inputs);
  return call;
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::issue(Call call) {
  if (!coalesced_) return c10::make_intrusive<CallWork>(getRank(), std::move(call));
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(coalesced_->works, call.works);
  append(coalesced_->kept, call.kept);
  append(coalesced_->kept, call.inputs);
  append(coalesced_->outputs, call.outputs);
  if (call.after) coalesced_after_.push_back(std::move(call.after));
  return nullptr;
}

void LeewayBackend::startCoalescing() {
  coalesced_ = begin(OpType::COALESCED, "coalesced", {});
  coalesced_after_.clear();
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::endCoalescing() {
  TORCH_CHECK(coalesced_, "endCoalescing() without startCoalescing()");
  Call call = std::move(*coalesced_);
  coalesced_.reset();
  call.after = [all = std::exchange(coalesced_after_, {})] {
    for (const auto& after : all) after();
  };
  return issue(std::move(call));
}

// ---- reductions ---------------------------------------------------------------------------------

c10::intrusive_ptr<c10d::Work> LeewayBackend::allreduce(Tensors& tensors,
                                                        const c10d::AllreduceOptions& opts) {
  constexpr const char* kCall = "all_reduce";
  at::Tensor& tensor = single(tensors, kCall);
  if (tensor.is_sparse()) return allreduce_sparse(tensors, opts);
  Call call = begin(OpType::ALLREDUCE, "all_reduce", tensors);
  call.outputs = tensors;
  require_host(tensor, kCall);
  TORCH_CHECK(!tensor.is_complex() || c10d::isComplexViewAsRealAllowed(opts.reduceOp),
              "all_reduce does not support", " this reduction on complex tensors");
  const at::Tensor memory = contiguous_twin(tensor);
  call.kept = {memory};
  call.works.push_back(communicator().all_reduce_async(
      reducible(as_real(memory), kCall),
      reducing(opts.reduceOp, as_real(memory), opts.timeout, kCall)));
  if (!memory.is_same(tensor)) call.after = [memory, tensor] { tensor.copy_(memory); };
  return issue(std::move(call));
}

// Every rank gets all ranks' entries, and adds up those of one place. How many entries each has
// must be known first, which this call waits for.
c10::intrusive_ptr<c10d::Work> LeewayBackend::allreduce_sparse(Tensors& tensors,
                                                               const c10d::AllreduceOptions& opts) {
  constexpr const char* kCall = "all_reduce of a sparse tensor";
  at::Tensor& tensor = single(tensors, kCall);
  TORCH_CHECK(opts.reduceOp == c10d::ReduceOp::SUM, kCall, ": only sums are supported");
  const at::Tensor entries = tensor.coalesce();
  const at::Tensor indices = entries.indices().t().contiguous();  // an entry a row
  const at::Tensor values = entries.values().contiguous();
  require_host(values, kCall);
  const CollectiveOptions options = copying(opts.timeout);
  std::vector<std::int64_t> entry_counts(static_cast<std::size_t>(getSize()));
  const std::int64_t own = values.size(0);
  (void)value_of(communicator().all_gather(std::span(&own, 1), std::span(entry_counts), options));
  const std::int64_t sum =
      std::accumulate(entry_counts.begin(), entry_counts.end(), std::int64_t{0});

  Call call = begin(OpType::_ALLREDUCE_SPARSE, "all_reduce", tensors);
  call.outputs = tensors;
  const auto gather_rows = [&](const at::Tensor& rows) {
    std::vector<std::int64_t> shape = rows.sizes().vec();
    shape[0] = sum;
    const at::Tensor all = at::empty(shape, rows.options());
    call.kept.insert(call.kept.end(), {rows, all});
    std::vector<std::size_t> counts;
    for (const std::int64_t count : entry_counts)
      counts.push_back(static_cast<std::size_t>(sum == 0 ? 0 : count * (all.numel() / sum)));
    const TensorView to = copyable(all, kCall);
    call.works.push_back(communicator().all_gather_async(copyable(rows, kCall), to,
                                                         Blocks(scaled(counts, all, to)), options));
    return all;
  };
  const at::Tensor all_indices = gather_rows(indices);
  const at::Tensor all_values = gather_rows(values);
  call.after = [all_indices, all_values, tensor] {
    const at::Tensor total = at::sparse_coo_tensor(all_indices.t(), all_values, tensor.sizes(),
                                                   all_values.options().layout(at::kSparse));
    tensor.copy_(total.coalesce());
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
  require_host(tensor, kCall);
  Call call = begin(OpType::REDUCE, "reduce", tensors);
  call.outputs = tensors;
  const at::Tensor input = contiguous_twin(tensor);
  const bool root = opts.rootRank == getRank();
  // The result needs memory of its own, which others do not have.
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
  const at::Tensor from = input.contiguous();
  const at::Tensor to = output.is_contiguous() ? output
                                               : at::empty_like(output, output.options(),
                                                                at::MemoryFormat::Contiguous);
  call.kept = {from, to};
  call.works.push_back(communicator().reduce_scatter_async(
      reducible(as_real(from), kCall), reducible(as_real(to), kCall),
      reducing(opts.reduceOp, as_real(from), opts.timeout, kCall)));
  if (!to.is_same(output)) call.after = [to, output] { output.copy_(to); };
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
  const at::Tensor to = at::empty({output.numel()}, output.options());
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
  startCoalescing();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    (void)_reduce_scatter_base(outputs[i], inputs[i], opts);
  return endCoalescing();
}

// ---- copies -------------------------------------------------------------------------------------

c10::intrusive_ptr<c10d::Work> LeewayBackend::broadcast(Tensors& tensors,
                                                        const c10d::BroadcastOptions& opts) {
  constexpr const char* kCall = "broadcast";
  at::Tensor& tensor = single(tensors, kCall);
  require_host(tensor, kCall);
  Call call = begin(OpType::BROADCAST, "broadcast", tensors);
  call.outputs = tensors;
  // Ranks' strides may differ, so that the order of elements is the contiguous one.
  const at::Tensor memory = tensor.contiguous();
  call.kept = {memory};
  call.works.push_back(communicator().broadcast_async(
      copyable(memory, kCall), static_cast<Rank>(opts.rootRank), copying(opts.timeout)));
  if (!memory.is_same(tensor) && opts.rootRank != getRank())
    call.after = [memory, tensor] { tensor.copy_(memory); };
  return issue(std::move(call));
}

void LeewayBackend::start_all_gather(Call& call, const Tensors& outputs, const at::Tensor& input,
                                     const CollectiveOptions& options) {
  constexpr const char* kCall = "all_gather";
  TORCH_CHECK(outputs.size() == static_cast<std::size_t>(getSize()), kCall, ": ", outputs.size(),
              " outputs for ", getSize(), " ranks");
  same_type(outputs, input, kCall);
  const at::Tensor from = input.contiguous();
  const at::Tensor flat = flat_room(outputs);
  call.kept.insert(call.kept.end(), {from, flat});
  const TensorView to = copyable(flat, kCall);
  const std::vector<std::size_t> counts = scaled(counts_of(outputs), flat, to);
  call.works.push_back(
      communicator().all_gather_async(copyable(from, kCall), to, Blocks(counts), options));
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
  const at::Tensor from = input.contiguous();
  const at::Tensor to = output.is_contiguous() ? output
                                               : at::empty_like(output, output.options(),
                                                                at::MemoryFormat::Contiguous);
  call.kept = {from, to};
  call.works.push_back(communicator().all_gather_async(copyable(from, kCall), copyable(to, kCall),
                                                       copying(opts.timeout)));
  if (!to.is_same(output)) call.after = [to, output] { output.copy_(to); };
  return issue(std::move(call));
}

// outputs[i][j]: input j of rank i.
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
  startCoalescing();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    (void)_allgather_base(outputs[i], inputs[i], opts);
  return endCoalescing();
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                                                     const c10d::GatherOptions& opts) {
  constexpr const char* kCall = "gather";
  const at::Tensor& input = single(inputs, kCall);
  require_host(input, kCall);
  Call call = begin(OpType::GATHER, "gather", inputs);
  const at::Tensor from = input.contiguous();
  call.kept = {from};
  const TensorView sent = copyable(from, kCall);
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
    to = copyable(flat, kCall);
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
  require_host(output, kCall);
  const bool root = opts.rootRank == getRank();
  Call call = begin(OpType::SCATTER, "scatter", root ? single(inputs, kCall) : Tensors());
  call.outputs = outputs;
  const at::Tensor to = at::empty({output.numel()}, output.options());
  call.kept = {to};
  const TensorView received = copyable(to, kCall);
  ConstTensorView all(nullptr, 0, received.dtype);
  if (root) {
    const Tensors& parts = single(inputs, kCall);
    TORCH_CHECK(parts.size() == static_cast<std::size_t>(getSize()), kCall, ": ", parts.size(),
                " inputs for ", getSize(), " ranks");
    same_type(parts, output, kCall);
    const at::Tensor flat = flattened(parts);
    call.kept.push_back(flat);
    all = copyable(flat, kCall);
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
  const at::Tensor from = input.contiguous();
  const at::Tensor to = output.is_contiguous() ? output
                                               : at::empty_like(output, output.options(),
                                                                at::MemoryFormat::Contiguous);
  call.kept = {from, to};
  const TensorView sent = copyable(from, kCall);
  const TensorView received = copyable(to, kCall);
  const auto input_counts = scaled(blocks_of(from, input_splits, getSize(), kCall), from, sent);
  const auto output_counts = scaled(blocks_of(to, output_splits, getSize(), kCall), to, received);
  call.works.push_back(communicator().all_to_all_async(
      sent, Blocks(input_counts), received, Blocks(output_counts), copying(opts.timeout)));
  if (!to.is_same(output)) call.after = [to, output] { output.copy_(to); };
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
  const TensorView sent = copyable(from, kCall);
  const TensorView received = copyable(to, kCall);
  const auto input_counts = scaled(counts_of(inputs), from, sent);
  const auto output_counts = scaled(counts_of(outputs), to, received);
  call.works.push_back(communicator().all_to_all_async(
      sent, Blocks(input_counts), received, Blocks(output_counts), copying(opts.timeout)));
  call.after = [to, outputs] { unflatten(to, outputs); };
  return issue(std::move(call));
}

// ---- messages, barriers -------------------------------------------------------------------------

c10::intrusive_ptr<c10d::Work> LeewayBackend::send(Tensors& tensors, int to, int tag) {
  at::Tensor& tensor = single(tensors, "send");
  require_host(tensor, "send");
  Call call = begin(OpType::SEND, "send", tensors);
  const at::Tensor memory = tensor.contiguous();
  call.kept = {memory};
  CollectiveOptions options = copying(c10d::kUnsetTimeout);
  options.tag = static_cast<std::uint32_t>(tag);
  call.works.push_back(
      communicator().send_async(copyable(memory, "send"), static_cast<Rank>(to), options));
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::recv(Tensors& tensors, int from, int tag) {
  at::Tensor& tensor = single(tensors, "recv");
  require_host(tensor, "recv");
  Call call = begin(from < 0 ? OpType::RECVANYSOURCE : OpType::RECV,
                    from < 0 ? "recvAnySource" : "recv", tensors);
  call.outputs = tensors;
  const at::Tensor memory = tensor.contiguous();
  call.kept = {memory};
  CollectiveOptions options = copying(c10d::kUnsetTimeout);
  options.tag = static_cast<std::uint32_t>(tag);
  call.works.push_back(communicator().recv_async(
      copyable(memory, "recv"), from < 0 ? kAnyRank : static_cast<Rank>(from), options));
  if (!memory.is_same(tensor)) call.after = [memory, tensor] { tensor.copy_(memory); };
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::recvAnysource(Tensors& tensors, int tag) {
  return recv(tensors, -1, tag);
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::barrier(const c10d::BarrierOptions& opts) {
  Call call = begin(OpType::BARRIER, "barrier", {});
  call.works.push_back(communicator().barrier_async(deadline(opts.timeout)));
  return issue(std::move(call));
}

// Rank 0 hears from every rank and then lets all go, so that it can name who is missing.
void LeewayBackend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  // Unlike everywhere else, no time at all may be asked for.
  const Duration patience =
      opts.timeout == c10d::kUnsetTimeout ? Duration(options_->timeout) : Duration(opts.timeout);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  std::byte byte{};
  const auto options = [&](std::uint32_t tag) {
    CollectiveOptions made;
    made.delivery = exact(patience);
    made.tag = tag;
    return made;
  };
  const TensorView one(&byte, 1, DataType::u8);
  TORCH_CHECK_WITH(DistBackendError, patience.count() > 0, "Rank ", getRank(),
                   " timed out in monitoredBarrier after ", milliseconds, " ms");
  if (getRank() != 0) {
    const auto sent = communicator().send(one, 0, options(kArrivedTag));
    const auto released = sent.ok() ? communicator().recv(one, 0, options(kReleasedTag)) : sent;
    TORCH_CHECK_WITH(DistBackendError, released.ok(), "Rank ", getRank(),
                     " successfully reached monitoredBarrier, but received errors while waiting "
                     "for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n ",
                     "Original exception: \n", released.status().c_str());
    return;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(getSize()));
  std::vector<leeway::Work> arrivals;
  for (int rank = 1; rank < getSize(); ++rank) {
    arrivals.push_back(communicator().recv_async(
        TensorView(&bytes[static_cast<std::size_t>(rank)], 1, DataType::u8),
        static_cast<Rank>(rank), options(kArrivedTag)));
  }
  std::string missing;
  Status first;
  for (int rank = 1; rank < getSize(); ++rank) {
    const auto arrived = arrivals[static_cast<std::size_t>(rank) - 1].wait();
    if (arrived.ok()) continue;
    if (first.ok()) first = arrived.status();
    if (!missing.empty() && !wait_all_ranks) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  TORCH_CHECK_WITH(DistBackendError, missing.empty(), wait_all_ranks ? "Ranks " : "Rank ", missing,
                   " failed to pass monitoredBarrier in ", milliseconds, " ms: ", first.c_str());
  for (int rank = 1; rank < getSize(); ++rank) {
    const auto released = communicator().send(one, static_cast<Rank>(rank), options(kReleasedTag));
    TORCH_CHECK_WITH(DistBackendError, released.ok(), "Rank ", rank,
                     " failed to pass monitoredBarrier in ", milliseconds,
                     " ms: ", released.status().c_str());
  }
}

}  // namespace leeway::torch_backend
