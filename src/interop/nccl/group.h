// ncclGroupStart to ncclGroupEnd: calls of one thread that begin together.
//
// Nothing begins before the outermost End. Then what makes and ends communicators begins, then each
// communicator's collectives in the order of the calls, then all of its sends and receives as one
// operation, so that no order of them can block. The first error inside is End's result, and
// nothing begins. Operations on device memory are enqueued side by side (device/stager.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "interop/nccl/comm.h"
#include "interop/nccl/operation.h"

namespace leeway::nccl {

class Group {
 public:
  // Something other than an operation: makes or ends a communicator.
  struct Job {
    std::shared_ptr<Comm> comm;  // of which it is
    std::function<void()> begin;
    std::function<Code()> wait;            // after begin(), where the communicator blocks
    std::function<void()> cancel = [] {};  // in place of begin()
    bool waits = false;                    // for its end, whatever the communicator
  };

  // The calling thread's.
  static Group& mine();

  bool open() const { return depth_ > 0; }
  void start() { ++depth_; }
  Code end();
  // Ends a group without beginning anything.
  Code discard();

  // An operation or a job; at once where no group is open.
  Code add(const std::shared_ptr<Comm>& comm, const Operation& operation);
  Code add(Job job);
  // An error of a call inside, which the call answers too.
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
  // Of one communicator, host memory and memory of streams.
  bool mixes_memory() const;
  static Code run(const std::shared_ptr<Comm>& comm, const Operation& operation);
  static Code run(const Job& job);
  std::vector<Together> gather_calls();
  // `code`: what enqueueing the work of streams answers.
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
