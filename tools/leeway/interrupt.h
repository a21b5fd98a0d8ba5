// The first Ctrl-C asks runs to stop. A second one ends the process as usual.
#pragma once

#include <atomic>

namespace leeway::tools {

// While an object exists, the first SIGINT or SIGTERM sets flag() and does nothing else. Only one
// object may exist at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  std::atomic<bool>& flag();
  // Returns the exit code that shells expect of a process that a signal ended: 128 + the signal's
  // number. 0 if none came.
  int exit_code() const;
};

}  // namespace leeway::tools
