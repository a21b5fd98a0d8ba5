// A communicator that is being made, shared by the caller's PendingCommunicator and the code that
// makes it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/fork.h"
#include "base/thread.h"
#include "driving/work_state.h"
#include "leeway/communicator.h"

namespace leeway::internal {

class PendingState : public std::enable_shared_from_this<PendingState> {
 public:
  using Outcome = Result<std::unique_ptr<Communicator>>;

  // Makes the communicator on a thread of its own.
  void run(std::function<Outcome(std::stop_token)> make);
  // Ends the call. Only the first outcome counts; a communicator that comes too late is aborted.
  void finish(Outcome outcome);

  bool done() const { return done_.load(std::memory_order_acquire) || forked(); }
  void on_done(Callback callback);
  Outcome wait();
  void abort();
  // Drops a state that no handle uses any more. Returns when its thread has ended, or at once if
  // called on that thread.
  static void drop(std::shared_ptr<PendingState> state);

  // The operation of a split, which a waiting thread drives; null for other calls. Set before any
  // thread waits.
  std::shared_ptr<WorkState> work;

 private:
  // Returns true in a forked child if the call was begun before the fork.
  bool forked() const { return generation_ != fork_generation(); }

  const std::uint32_t generation_ = fork_generation();
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Outcome> outcome_;  // until it is handed over
  std::vector<Callback> callbacks_;
  Thread thread_;
};

}  // namespace leeway::internal
