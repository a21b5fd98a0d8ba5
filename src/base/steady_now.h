// The steady clock as an Instant, for rooms that may read a clock. src/core may not: it is handed
// the time.
#pragma once

#include <chrono>

#include "base/time.h"

namespace leeway {

inline Instant steady_now() {
  return {std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())
              .count()};
}

}  // namespace leeway
