#include "base/thread.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <list>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/exit_stop.h"
#include "base/per_process.h"

namespace leeway {
namespace {

// Time that exit() waits for all threads together. Threads stop within milliseconds, unless a name
// server or a program's callback keeps a thread for longer.
constexpr auto kExitTime = std::chrono::milliseconds(500);

std::atomic<int> threads_left{-1};

// Threads of one process. A forked child has none of its parent's threads.
struct Running {
  std::mutex mutex;
  std::condition_variable ended;
  std::list<std::pair<std::thread::id, std::stop_source>> threads;
  bool over = false;                        // the process is ending
  std::vector<std::shared_ptr<void>> left;  // handles of threads that exist only in the parent
};

Running& running() {
  static PerProcess<Running> of_process;
  return of_process.get();
}

// Returns a text with the smallest limit of this process's control groups, or an empty text if no
// group has a limit.
std::string limit_of_groups() {
  std::ifstream groups("/proc/self/cgroup");
  unsigned long least = std::numeric_limits<unsigned long>::max();
  for (std::string line; std::getline(groups, line);) {
    const bool second = line.starts_with("0::");  // the second version of control groups
    const std::size_t first = line.find(":pids:");
    if (!second && first == std::string::npos) continue;
    std::string folder = line.substr(second ? 3 : first + 6);
    while (true) {
      const std::string root = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/pids";
      unsigned long max = 0;
      if (std::ifstream(root + folder + "/pids.max") >> max) least = std::min(least, max);
      if (folder.empty()) break;
      folder.resize(folder.rfind('/'));
    }
  }
  if (least == std::numeric_limits<unsigned long>::max()) return "";
  return ", pids.max of its control group is " + std::to_string(least);
}

Status none_to_be_had(const char* purpose, const char* why) {
  std::string limits = limit_of_groups();
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);  // may limit memory, which the stack needs
  if (limit.rlim_cur != RLIM_INFINITY)
    limits += ", RLIMIT_AS " + std::to_string(limit.rlim_cur) + " (ulimit -v)";
  ::getrlimit(RLIMIT_NPROC, &limit);
  const std::string own =
      limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
  return Status::error(StatusCode::kResourceExhausted,
                       "no thread can be had to %s: %s; RLIMIT_NPROC is %s (ulimit -u)%s", purpose,
                       why, own.c_str(), limits.c_str());
}

bool may_start() {
  int left = threads_left.load();
  while (left > 0 && !threads_left.compare_exchange_weak(left, left - 1)) {
  }
  return left != 0;
}

}  // namespace

struct Thread::State {
  std::thread thread;
  std::stop_source stop;
  const pid_t process = ::getpid();
};

Result<Thread> Thread::start(const char* purpose, Work work) {
  end_threads_at_exit();
  Thread made;
  made.state_ = std::make_shared<State>();
  Running& here = running();
  // The new thread takes this lock to remove its entry from the list. It is held until the entry is
  // in the list, so the entry cannot be removed too early.
  const std::lock_guard lock(here.mutex);
  if (here.over) {
    made.state_ = nullptr;
    return Status::error(StatusCode::kCancelled,
                         "no thread can be had to %s: the process is ending", purpose);
  }
  const auto run = [&here, stop = made.state_->stop, work = std::move(work)]() mutable {
    work(stop.get_token());
    work = nullptr;  // destroys the objects that the work holds before exit() goes on
    const std::lock_guard ending(here.mutex);
    here.threads.remove_if(
        [](const auto& entry) { return entry.first == std::this_thread::get_id(); });
    here.ended.notify_all();
  };
  try {
    if (!may_start()) throw std::system_error(EAGAIN, std::generic_category());
    made.state_->thread = std::thread(run);
  } catch (const std::system_error& failure) {
    made.state_ = nullptr;
    return none_to_be_had(purpose, failure.code().message().c_str());
  }
  here.threads.emplace_back(made.state_->thread.get_id(), made.state_->stop);
  return made;
}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (this == &other) return *this;
  end();
  state_ = std::move(other.state_);
  return *this;
}

bool Thread::is_this() const {
  return state_ != nullptr && state_->thread.get_id() == std::this_thread::get_id();
}

std::stop_source Thread::stop_source() const {
  return state_ == nullptr ? std::stop_source(std::nostopstate) : state_->stop;
}

void Thread::request_stop() {
  if (state_ != nullptr) state_->stop.request_stop();
}

void Thread::join() {
  const std::shared_ptr<State> state = std::exchange(state_, nullptr);
  if (state == nullptr) return;
  if (state->process != ::getpid()) {
    Running& here = running();
    const std::lock_guard lock(here.mutex);
    return here.left.push_back(state);
  }
  if (state->thread.get_id() == std::this_thread::get_id()) return state->thread.detach();
  state->thread.join();
}

void Thread::detach() {
  if (state_ != nullptr && state_->process == ::getpid()) state_->thread.detach();
  state_ = nullptr;
}

void Thread::end() {
  request_stop();
  join();
}

void run_together(const char* purpose, const std::vector<std::function<void()>>& tasks) {
  std::vector<Thread> beside;
  std::vector<const std::function<void()>*> here;
  for (const auto& task : tasks) {
    if (&task != &tasks.back()) {
      auto started = Thread::start(purpose, [&task](const std::stop_token&) { task(); });
      if (started.ok()) {
        beside.push_back(std::move(*started));
        continue;
      }
    }
    here.push_back(&task);
  }
  for (const auto* const task : here) (*task)();
}

void run_behind(const char* purpose, const std::function<void()>& task) {
  auto thread = Thread::start(purpose, [task](const std::stop_token&) { task(); });
  if (!thread.ok()) return task();
  thread->detach();
}

ExitStop::ExitStop(std::stop_token further) : further_(std::move(further), Ask{stop_}) {
  end_threads_at_exit();
  Running& here = running();
  const std::lock_guard lock(here.mutex);
  here.threads.emplace_back(std::this_thread::get_id(), stop_);
  if (here.over) stop_.request_stop();
}

ExitStop::~ExitStop() {
  Running& here = running();
  const std::lock_guard lock(here.mutex);
  here.threads.remove_if([this](const auto& entry) { return entry.second == stop_; });
  here.ended.notify_all();
}

void end_threads() {
  Running& here = running();
  std::unique_lock lock(here.mutex);
  here.over = true;
  const auto others = [&here] {
    std::vector<std::stop_source> all;
    for (const auto& [id, stop] : here.threads) {
      if (id != std::this_thread::get_id()) all.push_back(stop);
    }
    return all;
  };
  std::vector<std::stop_source> asked = others();
  lock.unlock();
  // The lock is not held here, because a stop calls functions that other rooms registered, and such
  // a function may take this lock.
  for (std::stop_source& one : asked) one.request_stop();
  lock.lock();
  here.ended.wait_for(lock, kExitTime, [&] { return others().empty(); });
}

void end_threads_at_exit() {
  [[maybe_unused]] static const int registered = std::atexit(end_threads);
}

void limit_threads(int more) {
  threads_left = more;
}

}  // namespace leeway
