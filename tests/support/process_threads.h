// Counts the threads of this process. Tests check with it that no thread is left behind.
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

// Returns true once this process has at most `most` threads, or false after 10 s. The kernel lists
// a joined thread for a moment longer, so a single look may count too many.
inline bool threads_fall_to(std::size_t most) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (threads_now() > most) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace leeway::testing
