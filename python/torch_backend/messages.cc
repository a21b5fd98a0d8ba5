// Calls for messages and barriers.
#include "backend.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "arguments.h"
#include "tensors.h"

namespace leeway::torch_backend {
namespace {

using c10d::OpType;

// Tags of monitoredBarrier(), above those that torch's users can give (int).
constexpr std::uint32_t kArrivedTag = 0xFFFF'FFF0;
constexpr std::uint32_t kReleasedTag = 0xFFFF'FFF1;

}  // namespace

c10::intrusive_ptr<c10d::Work> LeewayBackend::send(Tensors& tensors, int to, int tag) {
  at::Tensor& tensor = single(tensors, "send");
  require_supported(tensor, "send");
  Call call = begin(OpType::SEND, "send", tensors);
  const at::Tensor memory = host_input(tensor);
  call.kept = {memory};
  CollectiveOptions options = copying(c10d::kUnsetTimeout);
  options.tag = static_cast<std::uint32_t>(tag);
  call.works.push_back(communicator().send_async(copyable(memory), static_cast<Rank>(to), options));
  return issue(std::move(call));
}

c10::intrusive_ptr<c10d::Work> LeewayBackend::recv(Tensors& tensors, int from, int tag) {
  at::Tensor& tensor = single(tensors, "recv");
  require_supported(tensor, "recv");
  Call call = begin(from < 0 ? OpType::RECVANYSOURCE : OpType::RECV,
                    from < 0 ? "recvAnySource" : "recv", tensors);
  call.outputs = tensors;
  const at::Tensor memory = host_output(tensor);
  call.kept = {memory};
  CollectiveOptions options = copying(c10d::kUnsetTimeout);
  options.tag = static_cast<std::uint32_t>(tag);
  call.works.push_back(communicator().recv_async(
      copyable(memory), from < 0 ? kAnyRank : static_cast<Rank>(from), options));
  copy_back(call, memory, tensor);
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

// Rank 0 receives from every rank and then releases all, so that it can name the missing ranks.
void LeewayBackend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  // Unlike in other calls, a timeout of 0 means no time at all.
  const Duration patience =
      opts.timeout == c10d::kUnsetTimeout ? deadline({}) : Duration(opts.timeout);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  const auto begun = std::chrono::steady_clock::now();
  const auto left = [&] {
    return std::max<Duration>(Duration(1), patience - (std::chrono::steady_clock::now() - begun));
  };
  // One byte for each rank. A rank sends the byte with its own number.
  const auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(getSize()));
  const auto byte_of = [&](int rank) {
    return TensorView(&(*bytes)[static_cast<std::size_t>(rank)], 1, DataType::u8);
  };
  const auto options = [&](std::uint32_t tag) {
    CollectiveOptions made;
    made.delivery = exact(left());
    made.tag = tag;
    return made;
  };
  const TensorView own = byte_of(getRank());
  TORCH_CHECK_WITH(DistBackendError, patience.count() > 0, "Rank ", getRank(),
                   " timed out in monitoredBarrier after ", milliseconds, " ms");
  TORCH_CHECK_WITH(DistBackendError, !barrier_failed_, "Rank ", getRank(),
                   ": an earlier monitoredBarrier of this group failed here, and its ranks may be "
                   "one barrier apart since; make a new group");
  barrier_failed_ = true;  // reset once it has passed
  if (getRank() != 0) {
    const auto sent =
        wait_interruptibly(communicator().send_async(own, 0, options(kArrivedTag)), bytes);
    const auto released =
        sent.ok()
            ? wait_interruptibly(communicator().recv_async(own, 0, options(kReleasedTag)), bytes)
            : sent;
    TORCH_CHECK_WITH(DistBackendError, released.ok(), "Rank ", getRank(),
                     " successfully reached monitoredBarrier, but received errors while waiting "
                     "for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n ",
                     "Original exception: \n", released.status().c_str());
    barrier_failed_ = false;
    return;
  }
  std::vector<leeway::Work> arrivals;
  for (int rank = 1; rank < getSize(); ++rank) {
    arrivals.push_back(
        communicator().recv_async(byte_of(rank), static_cast<Rank>(rank), options(kArrivedTag)));
    arrivals.back().on_done([bytes] {});
  }
  std::string missing;
  Status first;
  for (int rank = 1; rank < getSize(); ++rank) {
    const auto arrived =
        wait_interruptibly(std::move(arrivals[static_cast<std::size_t>(rank) - 1]), bytes);
    if (arrived.ok()) continue;
    if (first.ok()) first = arrived.status();
    if (!missing.empty() && !wait_all_ranks) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  TORCH_CHECK_WITH(DistBackendError, missing.empty(), wait_all_ranks ? "Ranks " : "Rank ", missing,
                   " failed to pass monitoredBarrier in ", milliseconds, " ms: ", first.c_str());
  for (int rank = 1; rank < getSize(); ++rank) {
    const auto released = wait_interruptibly(
        communicator().send_async(own, static_cast<Rank>(rank), options(kReleasedTag)), bytes);
    TORCH_CHECK_WITH(DistBackendError, released.ok(), "Rank ", rank,
                     " failed to pass monitoredBarrier in ", milliseconds,
                     " ms: ", released.status().c_str());
  }
  barrier_failed_ = false;
}

}  // namespace leeway::torch_backend
