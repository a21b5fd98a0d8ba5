// A call of a process group in flight: c10d's Work on top of Leeway's.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "leeway/communicator.h"

namespace leeway::torch_backend {

using Tensors = std::vector<at::Tensor>;

// One call by torch: its arguments, and Leeway's operations that carry it out.
struct Call {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  std::string title;  // as the profiler shows it
  std::uint64_t sequence = 0;
  // Exactly the caller's list, for the profiler
  Tensors inputs;
  Tensors outputs;              // value of the future
  Tensors kept;                 // staging; lives until the call is done
  std::vector<Work> works;      // Leeway's operations; the call is done when all are
  std::function<void()> after;  // called if all have succeeded: copies results back
};

// Period at which a wait checks signals.
inline constexpr Duration kSlice = std::chrono::milliseconds(100);
// Checks signals and throws the exception of a Python handler, so that Ctrl-C ends a wait.
void look_at_signals();
// Like work.wait(), but throws the exception of a signal's handler. The operation then outlives
// this function, and keeps `kept`, the memory that it reads and writes, until it has ended.
Result<CollectiveReport> wait_interruptibly(leeway::Work work, std::shared_ptr<void> kept);

class CallWork final : public c10d::Work {
 public:
  CallWork(int rank, Call call);
  ~CallWork() override;

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override;

 private:
  // Shared with callbacks that may outlive this object.
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace leeway::torch_backend
