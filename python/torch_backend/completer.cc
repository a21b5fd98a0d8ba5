#include "completer.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace leeway::torch_backend {
namespace {

// Limit on the threads that stay when there is nothing to do. Most programs need one, and one more
// while a continuation waits.
constexpr int kIdleMax = 2;

class Completer {
 public:
  pid_t process() const { return process_; }
  void add(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    tasks_.push_back(std::move(task));
    call_thread();
    if (threads_ == 0) run_one(lock);  // no thread can be started, so the task runs here
  }

 private:
  // Makes a thread take the next task, even if all running tasks wait for that task. A thread that
  // is being started suffices, because it calls the next thread. The caller holds the lock.
  void call_thread() {
    if (idle_ > 0) {
      woken_.notify_one();
    } else if (!beginning_) {
      try {
        std::thread([this] { run(); }).detach();
        beginning_ = true;
        ++threads_;
      } catch (const std::system_error&) {  // no more threads: a busy one takes the task later
      }
    }
  }

  void run() {
    std::unique_lock lock(mutex_);
    beginning_ = false;
    while (!tasks_.empty() || idle_ < kIdleMax) {
      ++idle_;
      woken_.wait(lock, [this] { return !tasks_.empty(); });
      --idle_;
      run_one(lock);
    }
    --threads_;
  }

  void run_one(std::unique_lock<std::mutex>& lock) {
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    if (!tasks_.empty()) call_thread();
    lock.unlock();
    task();
    task = nullptr;  // without the lock: its destructor may need the GIL
    lock.lock();
  }

  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<std::function<void()>> tasks_;
  int threads_ = 0;
  int idle_ = 0;  // threads that wait for a task
  bool beginning_ = false;
};

}  // namespace

// The completer is never destroyed, because calls may end while the process does.
void run_later(std::function<void()> task) {
  static std::mutex mutex;
  static Completer* completer = nullptr;
  Completer* here = nullptr;
  {
    const std::lock_guard lock(mutex);
    if (completer == nullptr || completer->process() != getpid()) completer = new Completer;
    here = completer;
  }
  here->add(std::move(task));
}

}  // namespace leeway::torch_backend
