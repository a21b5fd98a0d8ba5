// Ctrl-C asks runs to stop; a second one ends the process as ever.
#pragma once

#include <atomic>

namespace leeway::tools {

// While one exists, the first SIGINT or SIGTERM sets flag() and nothing else. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  std::atomic<bool>& flag();
  // Returns the exit code that a shell expects of a process that ended so, 128 + signal, or 0 if
  // none came.
  int exit_code() const;
};

}  // namespace leeway::tools
