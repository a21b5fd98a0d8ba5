#include "interop/nccl/group.h"

#include <algorithm>
#include <utility>

#include "interop/nccl/debug.h"
#include "interop/nccl/devices.h"
#include "interop/nccl/execute.h"
#include "interop/nccl/staged.h"

namespace leeway::nccl {

// A started operation on host memory: a collective, or all messages of a communicator.
struct Group::Started {
  std::shared_ptr<Comm> comm;
  std::shared_ptr<Communicator> communicator;  // lives until the operation is done
  std::vector<Operation> operations;
  Work work;
  std::shared_ptr<HostCall> staged;  // used instead of work if the communicator is staged()

  Code finish() {
    if (staged != nullptr) return staged->wait();
    const auto outcome = work.wait();
    Code code = kSuccess;
    for (const Operation& operation : operations) {
      const Code one = comm->finish(operation, outcome);
      if (code == kSuccess) code = one;
    }
    return code;
  }
};

namespace {

constexpr const char* kTwoKinds =
    "ncclGroupEnd: operations of one communicator in host memory and in device memory; give them "
    "groups of their own";

bool on_streams(const std::shared_ptr<Comm>& comm, std::span<const Operation> operations) {
  using Memory = Operation::Memory;
  bool any = true;
  for (const Operation& one : operations) {
    if (one.memory == Memory::streams) return true;
    any = any && one.memory == Memory::any;
  }
  // Operations without elements can go on host memory or on a lane. They take the lane if there is
  // one, to keep its order.
  return any && comm->lane_if_made() != nullptr;
}

// Waits until all staged steps that were enqueued before have begun: operations begin in the order
// of the calls.
void wait_for_streams(Comm& comm) {
  const auto lane = comm.lane_if_made();
  if (lane != nullptr && stager() != nullptr) stager()->wait_begun(*lane);
}

// Leaves an operation to the background. Comm::state() is kInProgress until it has ended.
template <typename Started>
void finish_in_background(Started started) {
  const auto kept = std::make_shared<Started>(std::move(started));
  kept->comm->begin_operation();
  kept->work.on_done([kept] {
    (void)kept->finish();
    kept->comm->end_operation();
  });
}

}  // namespace

Group& Group::mine() {
  thread_local Group group;
  return group;
}

Code Group::note(Code code) {
  if (open() && error_ == kSuccess && code != kInProgress) error_ = code;
  return code;
}

Group::Started Group::start(const std::shared_ptr<Comm>& comm,
                            std::shared_ptr<Communicator> communicator,
                            std::vector<Operation> operations) {
  wait_for_streams(*comm);
  Started started{comm, std::move(communicator), std::move(operations), {}, nullptr};
  if (comm->staged()) {
    const auto call = std::make_shared<StagedCall>(comm, started.operations);
    if (!comm->blocking()) comm->begin_operation();
    started.staged = HostCall::begin(call, [comm] {
      if (!comm->blocking()) comm->end_operation();
    });
  } else if (is_message(started.operations.front().kind) && started.operations.size() > 1) {
    started.work = nccl::exchange(*started.communicator, started.operations);
  } else {
    started.work = nccl::start(*started.communicator, started.operations.front());
  }
  return started;
}

Code Group::run(const std::shared_ptr<Comm>& comm, const Operation& operation) {
  const std::shared_ptr<Communicator> communicator = comm->hold();
  if (communicator == nullptr) return comm->usable(title_of(operation.kind));
  if (on_streams(comm, {&operation, 1})) {
    const auto call = std::make_shared<StagedCall>(comm, std::vector{operation});
    return enqueue({&call, 1});
  }
  if (comm->blocking() && !comm->staged())
    return comm->finish(operation, nccl::run(*communicator, operation));
  Started started = start(comm, communicator, {operation});
  if (comm->blocking()) return started.finish();
  if (started.staged == nullptr) finish_in_background(std::move(started));
  return comm->state();
}

Code Group::run(const Job& job) {
  job.begin();
  return job.comm->blocking() || job.waits ? job.wait() : job.comm->state();
}

Code Group::add(const std::shared_ptr<Comm>& comm, const Operation& operation) {
  if (!open()) return run(comm, operation);
  calls_.push_back({comm, operation});
  return kSuccess;
}

Code Group::add(Job job) {
  if (!open()) return run(job);
  jobs_.push_back(std::move(job));
  return kSuccess;
}

Code Group::end() {
  if (!open()) return failed(kInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--depth_ > 0) return kSuccess;
  return end_outermost();
}

Code Group::discard() {
  if (!open()) return failed(kInvalidUsage, "ncclGroupEnd: not in a group call.");
  if (--depth_ > 0) return kSuccess;
  error_ = failed(kInvalidUsage,
                  "ncclGroupSimulateEnd: Leeway does not estimate times; the group is dropped");
  return end_outermost();
}

bool Group::mixes_blocking() const {
  bool seen[2] = {false, false};
  for (const Job& job : jobs_) seen[job.comm->blocking() ? 1 : 0] = true;
  for (const Call& call : calls_) seen[call.comm->blocking() ? 1 : 0] = true;
  return seen[0] && seen[1];
}

bool Group::mixes_memory() const {
  using Memory = Operation::Memory;
  for (const Call& one : calls_) {
    if (one.operation.memory != Memory::streams) continue;
    for (const Call& other : calls_) {
      if (other.comm == one.comm && other.operation.memory == Memory::host) return true;
    }
  }
  return false;
}

Code Group::end_outermost() {
  if (error_ == kSuccess && mixes_blocking()) {
    error_ = failed(kInvalidArgument,
                    "ncclGroupEnd: blocking and non-blocking communicators in one group");
  }
  if (error_ == kSuccess && mixes_memory()) error_ = failed(kInvalidUsage, kTwoKinds);
  const std::vector<Job> jobs = std::exchange(jobs_, {});
  if (const Code error = std::exchange(error_, kSuccess); error != kSuccess) {
    for (const Job& job : jobs) job.cancel();
    calls_.clear();
    return error;
  }
  for (const Job& job : jobs) job.begin();
  Code code = kSuccess;
  std::vector<Started> started = begin_operations(code);
  const auto blocks = [](const auto& one) { return one.comm->blocking(); };
  if (std::all_of(jobs.begin(), jobs.end(), blocks) &&
      std::all_of(started.begin(), started.end(), blocks)) {
    for (const Job& job : jobs) {
      const Code one = job.wait();
      if (code == kSuccess) code = one;
    }
    const Code rest = wait_all(started);
    return code == kSuccess ? rest : code;
  }
  std::vector<std::shared_ptr<Comm>> comms;
  for (const Job& job : jobs) {
    if (job.waits) (void)job.wait();
    comms.push_back(job.comm);
  }
  for (Started& one : started) {
    comms.push_back(one.comm);
    if (one.staged == nullptr) finish_in_background(std::move(one));
  }
  for (const auto& comm : comms) {
    if (code == kSuccess) code = comm->state();
  }
  return code;
}

// Returns the group's operations: each collective, then all messages of each communicator as one.
std::vector<Group::Together> Group::gather_calls() {
  const std::vector<Call> calls = std::exchange(calls_, {});
  std::vector<Together> all;
  std::vector<Together> messages;
  for (const Call& call : calls) {
    if (!is_message(call.operation.kind)) {
      all.push_back({call.comm, {call.operation}});
      continue;
    }
    auto of_comm = std::find_if(messages.begin(), messages.end(),
                                [&](const Together& one) { return one.comm == call.comm; });
    if (of_comm == messages.end()) of_comm = messages.insert(messages.end(), {call.comm, {}});
    of_comm->operations.push_back(call.operation);
  }
  all.insert(all.end(), messages.begin(), messages.end());
  return all;
}

std::vector<Group::Started> Group::begin_operations(Code& code) {
  std::vector<Started> started;
  std::vector<std::shared_ptr<StagedCall>> on_devices;
  for (Together& one : gather_calls()) {
    std::shared_ptr<Communicator> communicator = one.comm->hold();
    if (communicator == nullptr) {  // aborted or left since the calls
      if (code == kSuccess) code = one.comm->usable(title_of(one.operations.front().kind));
      continue;
    }
    if (on_streams(one.comm, one.operations)) {
      on_devices.push_back(std::make_shared<StagedCall>(one.comm, std::move(one.operations)));
    } else {
      started.push_back(start(one.comm, std::move(communicator), std::move(one.operations)));
    }
  }
  if (!on_devices.empty()) {
    const Code enqueued = enqueue(on_devices);
    if (code == kSuccess) code = enqueued;
  }
  return started;
}

Code Group::wait_all(std::vector<Started>& started) {
  Code code = kSuccess;
  for (Started& one : started) {
    const Code outcome = one.finish();
    if (code == kSuccess) code = outcome;
  }
  return code;
}

}  // namespace leeway::nccl
