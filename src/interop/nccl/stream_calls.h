// Calls on memory of streams that begin together, each by its route: by Leeway, by NVIDIA's
// library, or in hops by both (hierarchy/).
//
// Enqueued in this order: first hops inside the nodes and calls that are forwarded, then all of
// Leeway's steps side by side, then last hops. So every hop depends on what stands before it only.
// Messages of one group must not wait for each other: where some stay in the node and some leave
// it, the former go on a stream beside the group's own.
#pragma once

#include <memory>
#include <vector>

#include "interop/nccl/comm.h"
#include "interop/nccl/operation.h"
#include "interop/nccl/staged.h"

namespace leeway::nccl {

class StreamCalls {
 public:
  // A collective, or all messages of one communicator in a group.
  void add(const std::shared_ptr<Comm>& comm, const std::vector<Operation>& operations);
  // Returns when all is enqueued; see device/stager.h.
  Code enqueue();

 private:
  // Device memory of one call, from its stream's pool.
  struct Scratch {
    std::shared_ptr<Comm> comm;
    device::cuda::Stream stream = nullptr;
    device::cuda::Address memory = 0;
  };

  // Streams beside which a communicator's messages inside the node run.
  struct Fork {
    std::shared_ptr<Comm> comm;
    std::vector<device::cuda::Stream> streams;
  };

  void add_collective(const std::shared_ptr<Comm>& comm, const Operation& operation);
  void add_messages(const std::shared_ptr<Comm>& comm, const std::vector<Operation>& operations);
  void add_hops(const std::shared_ptr<Comm>& comm, const Operation& operation);
  void add_staged(const std::shared_ptr<Comm>& comm, std::vector<Operation> operations);
  Result<void*> take_scratch(const std::shared_ptr<Comm>& comm, const Operation& operation);
  void add_beside(const std::shared_ptr<Comm>& comm, const std::vector<Operation>& messages);
  // The stream beside waits for the others, or they for it.
  static Status tie(const Fork& fork, bool begins);
  Code enqueue_all();
  Code enqueue_hops();
  Code run(InnerCalls& calls);
  Code fail_all(const Status& status);

  std::vector<std::shared_ptr<Comm>> comms_;  // those with a hierarchy
  InnerCalls first_;
  std::vector<std::shared_ptr<StagedCall>> staged_;
  InnerCalls last_;
  std::vector<Fork> forks_;
  std::vector<Scratch> scratch_;
  Status status_;  // of add()
};

}  // namespace leeway::nccl
