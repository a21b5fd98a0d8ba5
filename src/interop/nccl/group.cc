#include "interop/nccl/group.h"

#include <algorithm>
#include <utility>

#include "interop/nccl/debug.h"
#include "interop/nccl/execute.h"

namespace leeway::nccl {

// A collective, or all messages of one communicator.
struct Group::Started {
  std::shared_ptr<Comm> comm;
  std::shared_ptr<Communicator> communicator;  // lives until the operation is done
  std::vector<Operation> operations;
  Work work;

  Code finish() {
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

// Its end is told by the communicator's state.
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

Code Group::run(const std::shared_ptr<Comm>& comm, const Operation& operation) {
  const std::shared_ptr<Communicator> communicator = comm->hold();
  if (communicator == nullptr) return comm->usable(title_of(operation.kind));
  if (comm->blocking()) return comm->finish(operation, nccl::run(*communicator, operation));
  finish_in_background(
      Started{comm, communicator, {operation}, nccl::start(*communicator, operation)});
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

Code Group::end_outermost() {
  if (error_ == kSuccess && mixes_blocking()) {
    error_ = failed(kInvalidArgument,
                    "ncclGroupEnd: blocking and non-blocking communicators in one group");
  }
  const std::vector<Job> jobs = std::exchange(jobs_, {});
  if (const Code error = std::exchange(error_, kSuccess); error != kSuccess) {
    for (const Job& job : jobs) job.cancel();
    calls_.clear();
    return error;
  }
  for (const Job& job : jobs) job.begin();
  std::vector<Started> started = begin_operations();
  const auto blocks = [](const auto& one) { return one.comm->blocking(); };
  if (std::all_of(jobs.begin(), jobs.end(), blocks) &&
      std::all_of(started.begin(), started.end(), blocks)) {
    Code code = kSuccess;
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
    finish_in_background(std::move(one));
  }
  for (const auto& comm : comms) {
    if (const Code code = comm->state(); code != kSuccess) return code;
  }
  return kSuccess;
}

std::vector<Group::Started> Group::begin_operations() {
  const std::vector<Call> calls = std::exchange(calls_, {});
  std::vector<Started> started;
  std::vector<Started> messages;  // one entry a communicator
  for (const Call& call : calls) {
    std::shared_ptr<Communicator> communicator = call.comm->hold();
    if (communicator == nullptr) continue;  // aborted since: the call was told, or will be
    if (!is_message(call.operation.kind)) {
      Work work = nccl::start(*communicator, call.operation);
      started.push_back({call.comm, std::move(communicator), {call.operation}, std::move(work)});
      continue;
    }
    auto of_comm = std::find_if(messages.begin(), messages.end(),
                                [&](const Started& one) { return one.comm == call.comm; });
    if (of_comm == messages.end())
      of_comm = messages.insert(messages.end(), {call.comm, std::move(communicator), {}, {}});
    of_comm->operations.push_back(call.operation);
  }
  for (Started& one : messages) {
    one.work = nccl::exchange(*one.communicator, one.operations);
    started.push_back(std::move(one));
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
