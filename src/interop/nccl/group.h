// ncclGroupStart to ncclGroupEnd: calls of one thread that begin together.
//
// Nothing begins before the outermost End. Then the jobs begin, which make and end communicators.
// Then each communicator's collectives begin in the order of the calls. Its sends and receives come
// last, as one operation, so that no order of them can deadlock. Operations on device memory are
// enqueued side by side (device/stager.h). If a call inside the group fails, End returns the first
// such error and begins nothing.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "interop/nccl/comm.h"
#include "interop/nccl/operation.h"

namespace leeway::nccl {

class Group {
 public:
  // A call that is no operation: it makes or ends a communicator.
  struct Job {
    std::shared_ptr<Comm> comm;  // the communicator that the job makes or ends
    std::function<void()> begin;
    // Called after begin(), if the communicator blocks or `waits` is true.
    std::function<Code()> wait;
    std::function<void()> cancel = [] {};  // called instead of begin()
    // If true, End waits for the communicator to end, even if the communicator does not block.
    bool waits = false;
  };

  // Returns the calling thread's group.
  static Group& mine();

  bool open() const { return depth_ > 0; }
  void start() { ++depth_; }
  Code end();
  // Ends the group without beginning any of its calls.
  Code discard();

  // Adds an operation or a job to the open group, or runs it at once if none is open.
  Code add(const std::shared_ptr<Comm>& comm, const Operation& operation);
  Code add(Job job);
  // Keeps the first error of a call inside the group. Returns `code`.
  Code note(Code code);

 private:
  struct Call {
    std::shared_ptr<Comm> comm;
    Operation operation;
  };
  struct Together {
    std::shared_ptr<Comm> comm;
    std::vector<Operation> operations;
  };
  struct Started;

  Code end_outermost();
  bool mixes_blocking() const;
  // Returns true if one communicator has operations on host memory and on memory of streams.
  bool mixes_memory() const;
  static Code run(const std::shared_ptr<Comm>& comm, const Operation& operation);
  static Code run(const Job& job);
  std::vector<Together> gather_calls();
  // Begins all operations of the group. Sets `code` if enqueueing on streams fails.
  std::vector<Started> begin_operations(Code& code);
  static Started start(const std::shared_ptr<Comm>& comm,
                       std::shared_ptr<Communicator> communicator,
                       std::vector<Operation> operations);
  static Code wait_all(std::vector<Started>& started);

  int depth_ = 0;
  Code error_ = kSuccess;
  std::vector<Job> jobs_;
  std::vector<Call> calls_;
};

}  // namespace leeway::nccl
