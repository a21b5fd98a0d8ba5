// The latest snapshot of a driver. The driving thread writes it, and other threads read it.
//
// The driving thread never waits. While a reader holds the lock, the driving thread skips the
// update; the next update comes a tenth of a second later.
#pragma once

#include <mutex>
#include <vector>

#include "driving/snapshot.h"
#include "observe/call_book.h"

namespace leeway::observe {

class Board {
 public:
  struct Sheet {
    driving::Snapshot snapshot;
    std::vector<Calls> calls;
  };

  void put(const driving::Snapshot& snapshot, const std::vector<Calls>& calls) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    sheet_.snapshot = snapshot;
    sheet_.calls = calls;
  }
  Sheet read() const {
    const std::lock_guard lock(mutex_);
    return sheet_;
  }

 private:
  mutable std::mutex mutex_;
  Sheet sheet_;
};

}  // namespace leeway::observe
