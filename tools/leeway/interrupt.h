// The first Ctrl-C asks runs to stop. A second one ends the process as usual.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

namespace leeway::tools {

// The signals that ask the command to end. One that was ignored at the start stays ignored: nohup
// ignores SIGHUP, and a shell ignores SIGINT for its background jobs.
inline constexpr std::array<int, 3> kInterrupts = {SIGHUP, SIGINT, SIGTERM};

bool is_ignored(int signal);

// Undoes what UCX's library does before main(): it makes SIGHUP a request for its debug output, so
// that SIGHUP would end no command, and nohup would not reach the processes that a command starts.
void restore_hangup();

// While an object exists, the first of kInterrupts sets flag() and does nothing else. Only one
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
