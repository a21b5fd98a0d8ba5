// Counts threads of this process, for tests that no thread is left behind.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <thread>

namespace leeway::testing {

inline std::size_t threads_now() {
  const std::filesystem::directory_iterator all("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// Returns false if there are still more after 10 s. A thread that was joined stays on the kernel's
// list for a moment, so a single count would be too high.
inline bool threads_fall_to(std::size_t most) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (threads_now() > most) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace leeway::testing
