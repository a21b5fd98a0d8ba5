// Decides which thread drives; only one does at a time. A caller that waits takes the role if
// nobody has it. Otherwise it sleeps until its operation is done or the role is free. A background
// thread takes the role in the callers' pauses.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/time.h"
#include "leeway/transport.h"

namespace leeway::driving {

// The role is free or taken by one thread. Each successful acquire call is followed by release(),
// or by release_to_callers() on the background thread.
class DrivingRole {
 public:
  // When a thread wants the role, the transport's wake() wakes the driving thread from its sleep.
  explicit DrivingRole(DatagramTransport& transport) : transport_(transport) {}

  // For a caller that must touch state that only the driving thread may touch. The thread that has
  // the role gives it back after its current step.
  void acquire();
  // For a caller that waits for something that the driving thread brings about. Returns false if
  // `done` was set or `until` passed before the role was free. `done`: any thread may read it.
  bool acquire_unless(const std::atomic<bool>& done, Instant until = Instant::infinite_future());
  // For a caller that does not wait. Returns false if the role is taken or wanted.
  bool acquire_if_free();
  // Like acquire_if_free(), for a caller that asks whether something is done. A caller that asks
  // without pauses drives as well as the background thread does. The background thread then gives
  // up the role, because the two would take the core from each other.
  bool acquire_to_poll(Instant now);
  // Returns true if a caller asks almost without pauses.
  bool polled() const { return polled_.load(std::memory_order_relaxed); }
  void release();

  // Returns true if another thread wants the role. Asked by the thread that has it, between steps.
  bool wanted() const { return wanting_.load(std::memory_order_relaxed) > 0; }

  // Wakes the threads that sleep until `done`. Called by the thread that drives, after it set
  // `done`.
  void announce(const std::atomic<bool>& done);

  // Says that there is asynchronous work. The background thread then takes the role as soon as it
  // is free, without waiting for a pause of the callers.
  void nudge();

  // For the background thread. Waits until no caller has the role or has come back for it within a
  // tick. Returns false after stop().
  bool acquire_in_pause();
  // Returns true if the background thread should give up the role, because a caller wants it.
  bool recalled() const { return wanted() || recalled_.load(std::memory_order_relaxed); }
  void release_to_callers();
  // Makes the background thread end. Callers can go on driving.
  void stop();

 private:
  struct Sleeper {
    const std::atomic<bool>* done;
    std::condition_variable woken;
  };
  // Called with the lock.
  bool take_if_free();
  void hand_on();
  bool sleep(std::unique_lock<std::mutex>& lock, Sleeper& sleeper, Instant until);

  DatagramTransport& transport_;
  std::mutex mutex_;
  std::condition_variable free_;    // for acquire()
  std::condition_variable pause_;   // for the background thread
  std::vector<Sleeper*> sleepers_;  // threads in acquire_unless(), in the order in which they came
  std::atomic<int> sleeping_{0};    // threads in acquire_unless() that sleep or are about to
  bool taken_ = false;
  std::atomic<bool> in_background_{false};  // taken by the background thread
  // A caller wants the role back from the background thread.
  std::atomic<bool> recalled_{false};
  std::atomic<int> wanting_{0};  // threads that want the role
  std::atomic<bool> polled_{false};
  Instant polled_at_;               // time of the latest poll
  int polls_ = 0;                   // polls in a row that were close to each other
  std::uint64_t acquisitions_ = 0;  // by callers
  std::uint64_t seen_ = 0;          // number of acquisitions that the background thread has seen
  bool nudged_ = false;
  bool stopped_ = false;
};

}  // namespace leeway::driving
