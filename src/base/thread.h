// Threads of the library. Nothing else in src starts one.
//
// If the system has no thread to give, a Status names the limit; no exception is thrown. A process
// may end at any moment: exit() asks all these threads to stop, and waits for them, so that no
// thread runs while objects that it uses are torn down.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "leeway/status.h"

namespace leeway {

class Thread {
 public:
  // Work runs on the new thread, and must return soon after a stop is requested.
  using Work = std::function<void(const std::stop_token&)>;

  // Makes an object without a thread.
  Thread() = default;
  // Starts `work` on a new thread. `purpose` is for the error's text, as in "no thread can be had
  // to <purpose>". Returns kResourceExhausted if the system has no thread, kCancelled if the
  // process is ending.
  static Result<Thread> start(const char* purpose, Work work);

  Thread(Thread&&) noexcept = default;
  // Stops and joins the thread of this object first, as the destructor does.
  Thread& operator=(Thread&& other) noexcept;
  // Calls request_stop() and join().
  ~Thread() { end(); }

  bool joinable() const { return state_ != nullptr; }
  // Returns whether the caller runs on this thread.
  bool is_this() const;
  // Lets code without this object ask for a stop, or learn that one was asked for.
  std::stop_source stop_source() const;
  void request_stop();
  // Returns when the work has returned. Two calls return at once, and the object no longer has the
  // thread: a call on the thread itself, and a call in a forked child, where the thread never ran.
  void join();
  // Lets the thread go on without a join. exit() still waits for it.
  void detach();

 private:
  struct State;
  void end();
  std::shared_ptr<State> state_;
};

// Runs all tasks at the same time: the last one on this thread, and each other one on a thread of
// its own. A task for which the system has no thread runs on this thread, before the last one.
// Returns when all tasks have returned.
void run_together(const char* purpose, const std::vector<std::function<void()>>& tasks);

// Runs the task on a thread that nobody joins, or on this one if no thread can be had.
void run_behind(const char* purpose, const std::function<void()>& task);

// Registers end_threads() for exit(); the first start() also does. Functions registered with
// std::atexit() after this call run before it, and find the threads still running.
void end_threads_at_exit();

// For tests: limits the number of further threads that start() gives. If negative, there is no
// limit but the system's.
void limit_threads(int more);

}  // namespace leeway
