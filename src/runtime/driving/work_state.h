// An operation in flight, shared by the caller's Work and, until it is done, its channel.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "collective/request.h"
#include "driving/callback.h"

namespace leeway::driving {
class Driver;

// Returns the status of calls in a forked child, if the communicator was made before the fork.
inline Status forked() {
  return Status::error(StatusCode::kUnavailable,
                       "this process was forked from the one that made the communicator, and has "
                       "none of its threads: make communicators after fork()");
}

}  // namespace leeway::driving

namespace leeway::internal {

struct WorkState {
  explicit WorkState(const collective::OperationSpec& spec) : request{.spec = spec} {}

  collective::Request request;
  std::atomic<bool> done{false};  // published: request is final and the caller's memory is free
  std::weak_ptr<driving::Driver> driver;  // the driver that brings it about

  // Returns true in a forked child if the operation is the parent's. Only the parent goes on with
  // it.
  bool orphaned() const {
    return generation_ != fork_generation() && !done.load(std::memory_order_acquire);
  }
  // Returns true if waiting for the operation is over, or of no use.
  bool over() const { return done.load(std::memory_order_acquire) || orphaned(); }

  // Call it only when over() is true.
  Result<CollectiveReport> outcome() const& {
    if (orphaned()) return driving::forked();
    if (!request.status.ok()) return request.status;
    return request.report;
  }
  Result<CollectiveReport> outcome() && {
    if (orphaned()) return driving::forked();
    if (!request.status.ok()) return request.status;
    return std::move(request.report);
  }

  // Calls back when the operation is over: at once if it is over already, else on the thread that
  // finds that out first.
  void call_when_done(Callback callback) {
    // (In a forked child the mutex may be locked for ever: a thread of the parent held it at the
    // fork.)
    if (!orphaned()) {
      const std::lock_guard lock(mutex_);
      if (!done.load(std::memory_order_acquire)) {
        callbacks_.push_back(std::move(callback));
        return;
      }
    }
    driving::call({&callback, 1});
  }
  // Marks the work as done, and moves its callbacks to `ready`.
  void publish(std::vector<Callback>& ready) {
    std::lock_guard lock(mutex_);
    done.store(true);
    for (Callback& callback : callbacks_) ready.push_back(std::move(callback));
    callbacks_.clear();
  }

 private:
  const std::uint32_t generation_ = fork_generation();
  std::mutex mutex_;
  std::vector<Callback> callbacks_;
};

}  // namespace leeway::internal
