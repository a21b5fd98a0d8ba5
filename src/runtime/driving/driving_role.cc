#include "driving/driving_role.h"

#include <sched.h>

#include <chrono>

#include "base/limits.h"

namespace leeway::driving {
namespace {

// Time that the background thread gives callers to come back before it takes the role: a tick. So
// it never takes the role between back-to-back blocking calls.
constexpr auto kGrace = std::chrono::nanoseconds(limits::kTickNs);

// Time that it takes to wake the background thread from the transport's sleep, and to get the role
// from that thread.
constexpr auto kHandOver = std::chrono::microseconds(50);

// A caller is a dense poller after kDensePolls polls in a row, each at most kDenseInterval after
// the one before. Such a caller can drive alone: a step takes a few microseconds, and with one step
// every 100 us it still moves gigabytes a second.
constexpr int kDensePolls = 16;
constexpr auto kDenseInterval = std::chrono::microseconds(100);

}  // namespace

void DrivingRole::acquire() {
  std::unique_lock lock(mutex_);
  ++acquisitions_;
  if (taken_) {
    ++wanting_;
    transport_.wake();
    free_.wait(lock, [this] { return !taken_; });
    --wanting_;
  }
  taken_ = true;
}

bool DrivingRole::acquire_unless(const std::atomic<bool>& done, Instant until) {
  // Yields first while the background thread drives, because it ends a short operation sooner than
  // it could hand over the role.
  const auto spun = std::chrono::steady_clock::now() + kHandOver;
  while (in_background_.load(std::memory_order_relaxed) && !done.load() &&
         std::chrono::steady_clock::now() < spun)
    sched_yield();
  if (done.load()) return false;
  std::unique_lock lock(mutex_);
  ++acquisitions_;
  if (taken_ || wanted()) {
    Sleeper sleeper{.done = &done, .woken = {}};
    sleepers_.push_back(&sleeper);
    ++sleeping_;
    if (in_background_) {
      recalled_ = true;
      transport_.wake();
    }
    bool in_time = true;
    while (in_time && (taken_ || wanted()) && !done.load()) in_time = sleep(lock, sleeper, until);
    std::erase(sleepers_, &sleeper);
    --sleeping_;
    if (done.load() || !in_time) {
      if (!taken_) hand_on();
      return false;
    }
  }
  taken_ = true;
  return true;
}

bool DrivingRole::sleep(std::unique_lock<std::mutex>& lock, Sleeper& sleeper, Instant until) {
  if (until == Instant::infinite_future()) {
    sleeper.woken.wait(lock);
    return true;
  }
  const std::chrono::steady_clock::time_point at{Duration(until.ns)};
  return sleeper.woken.wait_until(lock, at) == std::cv_status::no_timeout;
}

bool DrivingRole::acquire_if_free() {
  std::lock_guard lock(mutex_);
  return take_if_free();
}

bool DrivingRole::acquire_to_poll(Instant now) {
  std::lock_guard lock(mutex_);
  polls_ = now - polled_at_ <= kDenseInterval ? polls_ + 1 : 0;
  polled_at_ = now;
  if (polls_ >= kDensePolls) {
    polled_ = true;
    if (in_background_) recalled_ = true;
  }
  return take_if_free();
}

bool DrivingRole::take_if_free() {
  if (taken_ || wanted()) return false;
  ++acquisitions_;
  return taken_ = true;
}

void DrivingRole::release() {
  std::lock_guard lock(mutex_);
  taken_ = false;
  hand_on();
}

// Offers the free role to a thread that must touch the driving thread's state, else to the caller
// that has waited longest. The background thread is not woken, and looks every kGrace: waking it
// with each call made a 4 KiB all-reduce take 44 us instead of 10 to 23 (2 ranks), 178 instead of
// 72 (4 ranks).
void DrivingRole::hand_on() {
  if (wanted()) return free_.notify_all();
  if (!sleepers_.empty()) sleepers_.front()->woken.notify_one();
}

void DrivingRole::announce(const std::atomic<bool>& done) {
  if (sleeping_.load() == 0) return;
  std::lock_guard lock(mutex_);
  for (Sleeper* const sleeper : sleepers_) {
    if (sleeper->done == &done) sleeper->woken.notify_one();
  }
}

void DrivingRole::nudge() {
  {
    std::lock_guard lock(mutex_);
    nudged_ = true;
  }
  pause_.notify_all();
}

bool DrivingRole::acquire_in_pause() {
  std::unique_lock lock(mutex_);
  const auto busy = [this] { return taken_ || wanted(); };
  while (!stopped_ && (busy() || (acquisitions_ != seen_ && !nudged_))) {
    seen_ = acquisitions_;
    // Waits for `nudged_ && !busy()`, as the loop does. With `nudged_` alone the wait would return
    // at once while the role is taken, and the loop would spin without ever giving up the lock.
    pause_.wait_for(lock, kGrace, [&] { return stopped_ || (nudged_ && !busy()); });
  }
  if (stopped_) return false;
  nudged_ = false;
  polled_ = false;
  polls_ = 0;
  taken_ = true;
  in_background_ = true;
  return true;
}

void DrivingRole::release_to_callers() {
  std::lock_guard lock(mutex_);
  taken_ = false;
  in_background_ = false;
  recalled_ = false;
  hand_on();
  seen_ = acquisitions_;
}

void DrivingRole::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    recalled_ = true;  // makes a driving background thread let go
  }
  transport_.wake();
  pause_.notify_all();
}

}  // namespace leeway::driving
