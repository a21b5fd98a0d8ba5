// Threads of the library. Nothing else in src starts one.
//
// The system may have no thread to give: that is a Status which names the limit, never an
// exception. And a process may end at any moment: exit() asks all these threads to stop, and waits
// for them, so that none runs while what it uses is torn down.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "leeway/status.h"

namespace leeway {

class Thread {
 public:
  // Runs on the new thread. Returns soon after a stop is requested.
  using Work = std::function<void(const std::stop_token&)>;

  // None.
  Thread() = default;
  // `purpose`: for the error's text, as in "no thread can be had to <purpose>". kResourceExhausted:
  // the system has none. kCancelled: the process is ending.
  static Result<Thread> start(const char* purpose, Work work);

  Thread(Thread&&) noexcept = default;
  // This one is none or was joined, or is ended as by the destructor.
  Thread& operator=(Thread&& other) noexcept;
  // request_stop() and join().
  ~Thread() { end(); }

  bool joinable() const { return state_ != nullptr; }
  // Whether the caller runs on it.
  bool is_this() const;
  // For what must hear of a stop, or ask for one, without the handle.
  std::stop_source stop_source() const;
  void request_stop();
  // Returns when the work has returned. Lets go of the thread where the caller runs on it, or where
  // the process was forked from the one that has the thread.
  void join();
  // Nobody joins it. exit() waits for it all the same.
  void detach();

 private:
  struct State;
  void end();
  std::shared_ptr<State> state_;
};

// Runs all of them at the same time, as far as threads can be had, the last one on this thread.
// Returns when all have returned.
void run_together(const char* purpose, const std::vector<std::function<void()>>& tasks);

// Runs it on a thread that nobody joins; on this one where none can be had.
void run_behind(const char* purpose, const std::function<void()>& task);

// exit() stops threads from now on, as it does from the first start() on. What is registered with
// std::atexit() after this call comes first, and finds the threads running.
void end_threads_at_exit();

// For tests: so many more threads can be had; negative: as many as the system gives.
void limit_threads(int more);

}  // namespace leeway
