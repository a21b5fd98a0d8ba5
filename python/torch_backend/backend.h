// The backend "leeway" of torch.distributed: implements each of c10d's virtual functions by calls
// of one communicator.
//
// It only translates. Deliveries are exact unless the group's options say how large sums of
// floating types travel.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "call_work.h"
#include "leeway/communicator.h"

namespace leeway::torch_backend {

inline constexpr const char* kBackendName = "leeway";

// The pg_options of a group.
struct BackendOptions final : c10d::Backend::Options {
  explicit BackendOptions(std::string backend = kBackendName)
      : c10d::Backend::Options(std::move(backend)) {}
  c10::intrusive_ptr<c10d::Backend::Options> clone() const override {
    return c10::make_intrusive<BackendOptions>(*this);
  }

  // How sums and averages of floating types travel; exact if not set.
  std::optional<CollectiveOptions> gradients;
  // Sums and averages of fewer bytes are exact.
  std::size_t lossy_min_bytes = std::size_t{64} << 10;
};

class LeewayBackend final : public c10d::Backend {
 public:
  LeewayBackend(std::unique_ptr<Communicator> communicator,
                c10::intrusive_ptr<BackendOptions> options, std::string name);
  ~LeewayBackend() override;

  // Meets the group's other ranks in the store. `group` is its name, the same on all ranks.
  static c10::intrusive_ptr<LeewayBackend> create(const c10::intrusive_ptr<c10d::Store>& store,
                                                  int rank, int size, const std::string& group,
                                                  std::chrono::milliseconds timeout,
                                                  c10::intrusive_ptr<BackendOptions> options,
                                                  std::string name);

  const std::string getBackendName() const override { return name_; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return options_; }
  void setTimeout(std::chrono::milliseconds timeout) override { options_->timeout = timeout; }
  std::uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void setSequenceNumberForGroup() override {}
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;
  // Called when the interpreter ends. Leaves all groups at the same time, so that no peer takes
  // this process for dead.
  static void shutdown_all();
  // If false, batch_isend_irecv() makes its calls one by one. If true, PyTorch gathers the calls,
  // and keeps them if one throws. Later all_reduces of the group would join the kept calls and
  // never be made.
  bool supportsCoalescing() const override { return false; }
  void startCoalescing() override;
  c10::intrusive_ptr<c10d::Work> endCoalescing() override;

  using WorkPtr = c10::intrusive_ptr<c10d::Work>;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& opts) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& opts) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& opts) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& opts) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& opts) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& opts) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& opts) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& opts) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& opts) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& opts) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                        std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits,
                        const c10d::AllToAllOptions& opts) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) override;
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& opts) override;
  void monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) override;

 private:
  Communicator& communicator() const;
  Call begin(c10d::OpType type, const char* title, Tensors inputs);
  WorkPtr issue(Call call);
  Duration deadline(std::chrono::milliseconds timeout) const;
  CollectiveOptions copying(std::chrono::milliseconds timeout) const;
  CollectiveOptions reducing(const c10d::ReduceOp& op, const at::Tensor& tensor,
                             std::chrono::milliseconds timeout, const char* call) const;
  void start_all_gather(Call& call, const Tensors& outputs, const at::Tensor& input,
                        const CollectiveOptions& options);

  std::unique_ptr<Communicator> communicator_;
  const c10::intrusive_ptr<BackendOptions> options_;
  const std::string name_;
  std::uint64_t sequence_ = 0;
  bool barrier_failed_ = false;  // set while a monitoredBarrier() runs, and after one failed
  // Combines the calls that `calls` makes into one call. If one of them throws, none stays
  // gathered.
  WorkPtr coalesced(const std::function<void()>& calls);

  // The one call that is gathered between startCoalescing() and endCoalescing().
  std::optional<Call> coalesced_;
  std::vector<std::function<void()>> coalesced_after_;
};

}  // namespace leeway::torch_backend
