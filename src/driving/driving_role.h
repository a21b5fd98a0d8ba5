// Which thread drives: one at a time. Callers take the role when they wait or submit; a background
// thread takes it in their pauses.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "leeway/transport.h"

namespace leeway::driving {

class DrivingRole {
 public:
  // Wakes the thread that drives from the transport's sleep when another wants the role.
  explicit DrivingRole(DatagramTransport& transport) : transport_(transport) {}

  // Of a caller. Waits for the thread that drives.
  void acquire();
  void release();

  // Another thread wants the role; asked by the one that has it, between steps.
  bool wanted() const { return wanting_.load(std::memory_order_relaxed) > 0; }

  // There is asynchronous work: the background thread need not wait for a pause of the callers.
  void nudge();

  // Of the background thread. Waits until no caller has the role or has come back for it within a
  // tick; false after stop().
  bool acquire_in_pause();
  void release_to_callers();
  void stop();

 private:
  DatagramTransport& transport_;
  std::mutex mutex_;
  std::condition_variable free_;   // for callers
  std::condition_variable pause_;  // for the background thread
  bool taken_ = false;
  std::atomic<int> wanting_{0};     // threads that want the role
  std::uint64_t acquisitions_ = 0;  // by callers
  std::uint64_t seen_ = 0;          // of these, by the background thread
  bool nudged_ = false;
  bool stopped_ = false;
};

}  // namespace leeway::driving
