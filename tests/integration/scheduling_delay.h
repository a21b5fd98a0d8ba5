// Measures how late this machine lets a sleeping thread run after its time. Tests on busy machines
// allow for that delay in their time limits.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace leeway::integration {

// Measures while the object exists, in a thread that sleeps a millisecond at a time.
class SchedulingDelay {
 public:
  SchedulingDelay()
      : sleeper_([this](const std::stop_token& stop) {
          constexpr auto kNap = std::chrono::milliseconds(1);
          while (!stop.stop_requested()) {
            const auto start = std::chrono::steady_clock::now();
            std::this_thread::sleep_for(kNap);
            const std::chrono::duration<double, std::milli> late =
                std::chrono::steady_clock::now() - start - kNap;
            longest_ms_ = std::max(longest_ms_.load(), late.count());
          }
        }) {}

  double longest_ms() const { return longest_ms_; }

 private:
  std::atomic<double> longest_ms_{0.0};
  std::jthread sleeper_;  // the last member, because it uses the one above
};

}  // namespace leeway::integration
