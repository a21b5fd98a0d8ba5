#include "interop/nccl/hierarchy/inner.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>

#include "base/thread.h"
#include "interop/nccl/reductions.h"

namespace leeway::nccl {
namespace {

using std::chrono::microseconds;

// Between looks at a call that is not through: most are within a few microseconds.
constexpr microseconds kPauseMax{200};

void pause_after(int looks) {
  if (looks > 0) std::this_thread::sleep_for(std::min(kPauseMax, microseconds{looks}));
}

Code code_of_real(leeway_nccl_result code) {
  return static_cast<Code>(code);
}

// Which a program is told as the same code again (codes.h, staged.h).
StatusCode status_code_of(Code code) {
  switch (code) {
    case kCudaError:
      return StatusCode::kUnavailable;
    case kSystemError:
      return StatusCode::kResourceExhausted;
    case kInvalidArgument:
      return StatusCode::kInvalidArgument;
    case kInvalidUsage:
      return StatusCode::kUnsupported;
    case kRemoteError:
      return StatusCode::kPeerLost;
    case kTimeout:
      return StatusCode::kDeadlineExceeded;
    default:
      return StatusCode::kInternal;
  }
}

// The library's number of a call's reduction, valid while the call is made: the library copies a
// reduction of a program's own then.
struct Reducer {
  Reducer(const leeway_nccl_functions& functions, leeway_nccl_comm of, const InnerCall& call)
      : nccl(functions), comm(of), made(reduces(call.kind) && call.op == ReduceOp::premul_sum) {
    if (!made) {
      op = number_of(call.op);
      return;
    }
    constexpr leeway_nccl_enum kOfDevice = 0;
    constexpr leeway_nccl_enum kOfHost = 1;
    std::array<std::byte, sizeof(double)> factor{};
    store_scalar(call.factor, call.type, factor.data());
    const bool of_device = call.factor_memory != nullptr;
    void* const memory = of_device ? const_cast<void*>(call.factor_memory) : factor.data();
    code = code_of_real(nccl.RedOpCreatePreMulSum(&op, memory, number_of(call.type),
                                                  of_device ? kOfDevice : kOfHost, comm));
  }
  ~Reducer() {
    if (made && code == kSuccess) (void)nccl.RedOpDestroy(op, comm);
  }
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  const leeway_nccl_functions& nccl;
  leeway_nccl_comm const comm;
  const bool made;
  leeway_nccl_enum op = 0;
  Code code = kSuccess;
};

}  // namespace

Status Inner::error(const char* title, Code code) const {
  const char* const text = real_.call.GetLastError(comm_);
  return Status::error(status_code_of(code), "NVIDIA's NCCL answered %d to %s: %.300s",
                       static_cast<int>(code), title, text == nullptr ? "" : text);
}

bool Inner::enter() {
  ++inside_;
  if (!over_) return true;
  --inside_;
  return false;
}

Code Inner::settled(Code code, const std::function<bool()>& stop) {
  for (int looks = 0; code == kInProgress; ++looks) {
    if (over_ || stop()) return kInternalError;
    pause_after(looks);
    leeway_nccl_result now = kInProgress;
    const Code answer = code_of_real(real_.call.CommGetAsyncError(comm_, &now));
    code = answer == kSuccess ? code_of_real(now) : answer;
  }
  return code;
}

Status Inner::join(const leeway_nccl_id& id, int ranks, int rank, const Config& config,
                   const std::function<bool()>& stop) {
  leeway_nccl_config asked = passed_on(config);
  asked.blocking = 0;
  if (!enter()) return Status::error(StatusCode::kCancelled, "the communicator was aborted");
  Code code = code_of_real(real_.call.CommInitRankConfig(&comm_, ranks, id, rank, &asked));
  code = settled(code, stop);
  const Status status = code == kSuccess ? Status() : error("CommInitRankConfig", code);
  exit();
  return status;
}

Status Inner::state() {
  if (!enter()) return Status();
  leeway_nccl_result now = kSuccess;
  const Code answer = code_of_real(real_.call.CommGetAsyncError(comm_, &now));
  const Code code = answer == kSuccess ? code_of_real(now) : answer;
  const bool fine = code == kSuccess || code == kInProgress;
  Status status = fine ? Status() : error("CommGetAsyncError", code);
  exit();
  return status;
}

void Inner::wait_unused() const {
  while (inside_ > 0) std::this_thread::sleep_for(kPauseMax);
}

void Inner::begin_abort() {
  if (over_.exchange(true)) return;
  run_behind("abort NVIDIA's communicator", [self = shared_from_this()] {
    self->wait_unused();
    if (self->comm_ != nullptr) (void)self->real_.call.CommAbort(self->comm_);
    {
      const std::lock_guard lock(self->mutex_);
      self->aborted_ = true;
    }
    self->changed_.notify_all();
  });
}

bool Inner::wait_aborted(Duration patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return aborted_; });
}

void Inner::leave() {
  if (!enter()) return;
  const auto never = [] { return false; };
  const Code code = settled(code_of_real(real_.call.CommFinalize(comm_)), never);
  exit();
  if (code != kSuccess) return begin_abort();
  if (over_.exchange(true)) return;
  wait_unused();
  (void)real_.call.CommDestroy(comm_);
}

void InnerCalls::add(std::shared_ptr<Inner> inner, const InnerCall& call,
                     leeway_nccl_stream stream) {
  calls_.push_back({std::move(inner), call, stream});
}

Code InnerCalls::issue(const Call& one) {
  const leeway_nccl_functions& nccl = one.inner->real_.call;
  const InnerCall& call = one.call;
  const Reducer reducer(nccl, one.inner->comm_, call);
  if (reducer.code != kSuccess) return reducer.code;
  const leeway_nccl_enum type = number_of(call.type);
  const leeway_nccl_enum op = reducer.op;
  leeway_nccl_comm const comm = one.inner->comm_;
  leeway_nccl_stream const stream = one.stream;
  switch (call.kind) {
    case Kind::all_reduce:
      return code_of_real(
          nccl.AllReduce(call.send, call.receive, call.count, type, op, comm, stream));
    case Kind::reduce_scatter:
      return code_of_real(
          nccl.ReduceScatter(call.send, call.receive, call.count, type, op, comm, stream));
    case Kind::reduce:
      return code_of_real(
          nccl.Reduce(call.send, call.receive, call.count, type, op, call.peer, comm, stream));
    case Kind::broadcast:
      return code_of_real(
          nccl.Broadcast(call.send, call.receive, call.count, type, call.peer, comm, stream));
    case Kind::all_gather:
      return code_of_real(nccl.AllGather(call.send, call.receive, call.count, type, comm, stream));
    case Kind::all_to_all:
      return code_of_real(nccl.AlltoAll(call.send, call.receive, call.count, type, comm, stream));
    case Kind::gather:
      return code_of_real(
          nccl.Gather(call.send, call.receive, call.count, type, call.peer, comm, stream));
    case Kind::scatter:
      return code_of_real(
          nccl.Scatter(call.send, call.receive, call.count, type, call.peer, comm, stream));
    case Kind::send:
      return code_of_real(nccl.Send(call.send, call.count, type, call.peer, comm, stream));
    case Kind::recv:
      return code_of_real(nccl.Recv(call.receive, call.count, type, call.peer, comm, stream));
  }
  return kInternalError;
}

Status InnerCalls::run() {
  if (calls_.empty()) return Status();
  std::vector<Inner*> entered;
  Status status;
  for (const Call& one : calls_) {
    if (std::find(entered.begin(), entered.end(), one.inner.get()) != entered.end()) continue;
    if (!one.inner->enter()) {
      status = Status::error(StatusCode::kCancelled, "the communicator was aborted");
      break;
    }
    entered.push_back(one.inner.get());
  }
  if (status.ok()) status = run_all();
  for (Inner* const one : entered) one->exit();
  return status;
}

Status InnerCalls::run_all() {
  const Inner& first = *calls_.front().inner;
  const auto failed = [](Code code) { return code != kSuccess && code != kInProgress; };
  const bool grouped = calls_.size() > 1;
  Code code = kSuccess;
  const char* title = "GroupEnd";
  if (grouped) (void)first.real_.call.GroupStart();
  for (const Call& one : calls_) {
    code = issue(one);
    if (!failed(code)) continue;
    title = title_of(one.call.kind).data();
    break;
  }
  if (grouped) {
    const Code end = code_of_real(first.real_.call.GroupEnd());
    if (!failed(code)) code = end;
  }
  if (failed(code)) return first.error(title, code);
  for (const Call& one : calls_) {
    const Code outcome = one.inner->settled(code, [] { return false; });
    if (outcome != kSuccess) return one.inner->error(title_of(one.call.kind).data(), outcome);
  }
  return Status();
}

}  // namespace leeway::nccl
