// One rank of a communicator of NVIDIA's library, and calls of it.
//
// It never blocks its callers for a peer: the communicator is made not to block, and whoever needs
// to know what came of a call polls it, until the call is done or abort() was called.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "interop/nccl/codes.h"
#include "interop/nccl/config.h"
#include "interop/nccl/hierarchy/hops.h"
#include "interop/nccl/hierarchy/real.h"

namespace leeway::nccl {

class Inner : public std::enable_shared_from_this<Inner> {
 public:
  explicit Inner(const RealNccl& real) : real_(real) {}

  // Waits for all ranks, or until `stop` says so. On the thread's current device. `config` is
  // passed on whole, but for `blocking`.
  Status join(const leeway_nccl_id& id, int ranks, int rank, const Config& config,
              const std::function<bool()>& stop);

  // What the library says of it. Any thread.
  Status state();
  // Ends calls and kernels of this rank. On a thread of its own: the library may wait for streams
  // that wait for us.
  void begin_abort();
  // False: it is still at it after so long.
  bool wait_aborted(Duration patience);
  // Waits until its kernels are done and its peers leave too, or for abort().
  void leave();

 private:
  friend class InnerCalls;

  // False: it is being aborted, and must not be used. True: until exit().
  bool enter();
  void exit() { --inside_; }
  // Once it is over: until all threads have left.
  void wait_unused() const;
  // What became of a call that answered `code`, once that is known.
  Code settled(Code code, const std::function<bool()>& stop);
  Status error(const char* title, Code code) const;

  const RealNccl& real_;
  leeway_nccl_comm comm_ = nullptr;  // from join() on
  std::atomic<int> inside_{0};       // threads that use comm_
  std::atomic<bool> over_{false};    // nobody may begin to
  std::mutex mutex_;
  std::condition_variable changed_;
  bool aborted_ = false;  // done
};

// Calls that begin together, of one library.
class InnerCalls {
 public:
  void add(std::shared_ptr<Inner> inner, const InnerCall& call, leeway_nccl_stream stream);
  bool empty() const { return calls_.empty(); }
  // Returns when their work is enqueued. The first error.
  Status run();

 private:
  struct Call {
    std::shared_ptr<Inner> inner;
    InnerCall call;
    leeway_nccl_stream stream;
  };
  static Code issue(const Call& one);
  Status run_all();

  std::vector<Call> calls_;
};

}  // namespace leeway::nccl
