// A timer for an event queue from which events cannot be removed. However often the timer is set,
// it needs a new event only if no pending event comes early enough. When an event comes too early,
// the owner sets the timer again.
#pragma once

#include <cstdint>

#include "base/time.h"

namespace leeway::sim {

class LazyTimer {
 public:
  // Sets the timer to `due`; infinite_future() turns it off. Returns true if an event must be
  // pushed for that time.
  bool set(Instant due) {
    if (due >= Instant::infinite_future() || pending_ <= due) return false;
    pending_ = due;
    return true;
  }

  // Call it when an event came. Events for later times may still be pending.
  void on_event(Instant now) {
    if (pending_ <= now) pending_ = Instant::infinite_future();
  }

 private:
  Instant pending_ = Instant::infinite_future();  // the earliest event
};

}  // namespace leeway::sim
