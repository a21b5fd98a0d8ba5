// The first Ctrl-C asks runs to stop. A second one ends the process as usual.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

namespace leeway::tools {

// The signals that ask the command to end. A signal that was ignored at the start stays ignored:
// nohup makes a command ignore SIGHUP, and a shell makes its background jobs ignore SIGINT.
inline constexpr std::array<int, 3> kInterrupts = {SIGHUP, SIGINT, SIGTERM};

bool is_ignored(int signal);

// Restores what SIGHUP did when the process started. UCX's library makes it print debug output,
// even before main(). SIGHUP would then end no command, and under nohup processes that the command
// starts would not ignore it.
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
