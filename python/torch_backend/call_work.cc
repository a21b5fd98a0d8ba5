#include "call_work.h"

#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "completer.h"
#include "leeway/types.h"

namespace leeway::torch_backend {
namespace {

// Returns the devices of the tensors, except the CPU. A future waits on the streams of each device.
std::vector<c10::Device> devices_of(const Tensors& tensors) {
  std::vector<c10::Device> devices;
  for (const at::Tensor& tensor : tensors) {
    const c10::Device device = tensor.device();
    if (!device.is_cpu() && std::find(devices.begin(), devices.end(), device) == devices.end())
      devices.push_back(device);
  }
  return devices;
}

std::exception_ptr exception_of(const Status& status) {
  const std::string text = "leeway: " + std::string(status.text());
  try {
    C10_THROW_ERROR(DistBackendError, text);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

void look_at_signals() {
  const pybind11::gil_scoped_acquire hold;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

Result<CollectiveReport> wait_interruptibly(leeway::Work work, std::shared_ptr<void> kept) {
  work.on_done([kept = std::move(kept)] {});
  while (!work.wait_for(kSlice)) look_at_signals();
  return work.wait();
}

struct CallWork::State {
  explicit State(Call given) : call(std::move(given)) {}

  bool all_done() const {
    return std::all_of(call.works.begin(), call.works.end(),
                       [](const leeway::Work& work) { return work.done(); });
  }

  // Waits until all operations are done. Returns false if `patience` is over before. Throws the
  // exception of a signal's handler.
  bool wait_interruptibly(Duration patience) {
    const auto begun = std::chrono::steady_clock::now();
    for (leeway::Work& work : call.works) {
      while (!work.wait_for(std::min(kSlice, patience))) {
        look_at_signals();
        if (std::chrono::steady_clock::now() - begun >= patience) return false;
      }
    }
    return true;
  }

  // Called when all operations are done. Takes the outcome, copies results, ends the profiler's
  // event and marks the future. The first thread that comes does this work. Other threads wait
  // until the future is marked, but not for continuations.
  void complete() {
    take_outcome(std::unique_lock(mutex));
    c10::intrusive_ptr<c10::ivalue::Future> ready;
    bool first = false;
    {
      const std::lock_guard lock(future_mutex);
      if (!future) return;
      ready = future;
      first = !std::exchange(marked, true);
    }
    if (first) {
      mark(ready);  // runs continuations
    } else {
      ready->wait();  // marked by the other thread before it runs continuations
    }
  }

  void take_outcome(const std::unique_lock<std::mutex>&) {
    if (completed) return;
    Status first;
    for (leeway::Work& work : call.works) {
      const auto report = work.wait();
      if (!report.ok()) {
        if (first.ok()) first = report.status();
      } else if (!report->messages.empty()) {
        source = report->messages[0].source;
      }
    }
    try {
      if (!first.ok()) {
        error = exception_of(first);
      } else if (call.after) {
        call.after();
      }
    } catch (...) {
      error = std::current_exception();
    }
    if (profiled) std::exchange(profiled, nullptr)();
    call.after = nullptr;
    call.kept.clear();
    call.inputs.clear();
    completed = true;
  }

  // Queues `then` for the completer once all works are done.
  void when_done(std::function<void()> then) {
    auto left = std::make_shared<std::atomic<std::size_t>>(call.works.size() + 1);
    auto task = std::make_shared<std::function<void()>>(std::move(then));
    const auto tick = [left, task] {
      if (left->fetch_sub(1) == 1) run_later(std::move(*task));
    };
    for (leeway::Work& work : call.works) work.on_done(tick);
    tick();
  }

  void mark(const c10::intrusive_ptr<c10::ivalue::Future>& ready) {
    if (error) {
      ready->setErrorIfNeeded(error);
    } else {
      ready->markCompleted(c10::IValue(call.outputs));
    }
  }

  Call call;
  std::mutex mutex;  // held in take_outcome()
  std::atomic<bool> completed{false};
  std::exception_ptr error;
  Rank source = kNoRank;
  std::function<void()> profiled;
  std::mutex future_mutex;
  c10::intrusive_ptr<c10::ivalue::Future> future;
  bool marked = false;  // or being marked
};

CallWork::CallWork(int rank, Call call)
    : c10d::Work(rank, call.type, call.title.c_str(), call.inputs),
      state_(std::make_shared<State>(std::move(call))) {
  state_->profiled = std::exchange(recordFunctionEndCallback_, nullptr);
}

// Destroys the handle only: the call goes on and keeps its tensors.
CallWork::~CallWork() {
  if (state_->completed || state_->future) return;  // the future's task completes it
  state_->when_done([state = state_] { state->complete(); });
}

// Never blocks. So it runs no continuation, because a continuation may wait for the caller's next
// call.
bool CallWork::isCompleted() {
  {
    const std::lock_guard lock(state_->future_mutex);
    if (state_->future) return state_->future->completed();
  }
  if (!state_->completed && state_->all_done()) {
    std::unique_lock lock(state_->mutex, std::try_to_lock);
    if (lock.owns_lock()) state_->take_outcome(lock);
  }
  return state_->completed;
}

bool CallWork::isSuccess() const {
  return state_->completed && !state_->error;
}

std::exception_ptr CallWork::exception() const {
  return state_->error;
}

bool CallWork::wait(std::chrono::milliseconds timeout) {
  if (!state_->completed) {
    const auto patience = timeout.count() > 0 ? Duration(timeout) : no_deadline;
    TORCH_CHECK_WITH(DistBackendError, state_->wait_interruptibly(patience),
                     "leeway: Timed out after ", timeout.count(),
                     " ms in wait(); the call itself goes on");
  }
  state_->complete();
  if (state_->error) std::rethrow_exception(state_->error);
  return true;
}

int CallWork::sourceRank() const {
  TORCH_CHECK(opType_ == c10d::OpType::RECVANYSOURCE, "sourceRank() is of recvs from any rank");
  TORCH_CHECK(state_->completed && !state_->error, "sourceRank() is known once the recv is done");
  return state_->source;
}

std::vector<at::Tensor> CallWork::result() {
  TORCH_CHECK(isCompleted(), "result() is known once the call is done");
  return state_->call.outputs;
}

c10::intrusive_ptr<c10::ivalue::Future> CallWork::getFuture() {
  const bool done = isCompleted();
  {
    const std::lock_guard lock(state_->future_mutex);
    if (state_->future) return state_->future;
    state_->future = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()), devices_of(state_->call.outputs));
  }
  if (done) {  // completes here, without another thread
    state_->complete();
    return state_->future;
  }
  state_->when_done([state = state_] { state->complete(); });
  // At the end of backward() DistributedDataParallel waits for futures without checking signals. A
  // callback queued here waits before that, and checks signals while it waits.
  if (torch::autograd::get_current_graph_task_id() != -1) {
    torch::autograd::Engine::get_default_engine().queue_callback(
        [state = state_] { state->wait_interruptibly(no_deadline); });
  }
  return state_->future;
}

std::uint64_t CallWork::getSequencenumber() const {
  return state_->call.sequence;
}

}  // namespace leeway::torch_backend
